"""An evaluator on real submissions in boxes: equal verdicts, cancellation in every state, nothing that grows."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slop_code import EvaluationCancelledError, Evaluator, EvaluatorRequest, load_results
from slop_code.evaluation.result_files.origin import stored_origin
from tests.marks import in_long
from tests.process_checks import ends, processes_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slop_code import EnvironmentSpec, ProblemConfig
    from slop_code.execution.cache import Cache

DEADLINE_S = 100
TESTS = {
    "test_checkpoint_1.py": """
    def test_greets(run):
        assert run().stdout == "hello\\n"

    def test_counts(run):
        assert run("3").returncode == 3
    """
}
GOOD = "import sys\nfrom words import GREETING\nprint(GREETING)\nsys.exit(int((sys.argv[1:] or ['0'])[0]))\n"
FILES = {"main.py": GOOD, "words/__init__.py": b"GREETING = 'hello'\n"}


@pytest.fixture(autouse=True)
def _in_boxes(need_bubblewrap: Callable[[], None]) -> None:
    need_bubblewrap()


@pytest.fixture(scope="module")
def problem(make_problem: Callable[..., ProblemConfig]) -> ProblemConfig:
    return make_problem(TESTS)


@pytest.fixture
def evaluator(cache: Cache, environment_spec: Callable[..., EnvironmentSpec]) -> Iterator[Evaluator]:
    with Evaluator(2, environment_spec(), cache=cache.root) as made:
        yield made
        made.close(cancel=True)


def packed(folder: Path) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        tar.add(folder, ".")
    return stream.getvalue()


def test_folder_archive_and_mapping_have_the_same_verdict(evaluator, problem, make_submission, tmp_path):
    folder = make_submission(FILES)
    archive = packed(folder)
    (tmp_path / "submission.tgz").write_bytes(archive)
    sources = [folder, FILES, archive, tmp_path / "submission.tgz", io.BytesIO(archive), {**FILES, "main.py": "x ="}]
    outcomes = {outcome.index: outcome for outcome in evaluator.map([EvaluatorRequest(s, problem, 1) for s in sources])}
    assert [outcomes[number].error for number in range(len(sources))] == [None] * len(sources)
    results = [outcomes[number].results for number in range(len(sources))]
    assert [each.infrastructure_failure_reason for each in results] == [None] * len(sources)
    assert [each.passes() for each in results] == [True] * 5 + [False]
    assert len({each.provenance.digests.submission for each in results[:5]}) == 1
    assert {each.isolation["sandbox"] for each in results} == {"bubblewrap"}


def test_a_result_of_a_mapping_is_stored_without_a_path_that_is_gone(evaluator, problem, tmp_path):
    results = evaluator.evaluate(FILES, problem, 1, output=tmp_path / "out", policy="any")
    assert results.passes()
    assert load_results(tmp_path / "out") == results
    assert stored_origin(tmp_path / "out").snapshot is None
    assert stored_origin(tmp_path / "out").problem == str(problem.path)


def test_an_infrastructure_failure_ends_no_other_request(evaluator, problem, environment_spec):
    late = environment_spec({"timeouts": {"evaluation": 0.01}})
    requests = [EvaluatorRequest(FILES, problem, 1, late), EvaluatorRequest(FILES, problem, 1)]
    outcomes = sorted(evaluator.map(requests), key=lambda outcome: outcome.index)
    assert [outcome.results.infrastructure_failure for outcome in outcomes] == [True, False]
    assert [outcome.passes() for outcome in outcomes] == [False, True]


def test_coroutines_share_the_workers(evaluator, problem):
    async def all_results() -> list[bool]:
        calls = [evaluator.evaluate_async(FILES, problem, 1) for _ in range(2)]
        return [results.passes() for results in await asyncio.gather(*calls)]

    assert asyncio.run(all_results()) == [True] * 2


def sleeping(number: int) -> list[int]:
    """Processes `sleep NUMBER`, in whatever box they are."""
    words, pids = f"sleep\0{number}\0".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "cmdline").read_bytes() == words:
                pids.append(int(entry.name))
    return pids


def left(pids: list[int]) -> list[int]:
    """Those that do not end: a box that is killed takes a moment."""
    return [pid for pid in pids if not ends(pid, DEADLINE_S)]


class Stalling:
    """An archive that has no end."""

    def __init__(self, began: threading.Event) -> None:
        self.began, self.head = began, tarfile.TarInfo("main.py")
        self.head.size = 1 << 33
        self.left = self.head.tobuf()

    def read(self, size: int, /) -> bytes:
        part, self.left = self.left[:size], self.left[size:]
        if not part:
            self.began.set()
        return part or bytes(min(size, 1 << 16))


class Stall:
    """An evaluation that stays in one state, and the means to know that it is there."""

    def __init__(self, state: str, make_problem: Any, environment_spec: Any) -> None:
        self.number = 10**6 + os.getpid() * 10 + len(state)
        self.unpacking = threading.Event()
        self.state, sleep = state, f"sleep {self.number}"
        call = f"import subprocess\nsubprocess.run(['sleep', '{self.number}'])\n"
        test = {
            "collecting": call + "def test_greets(): pass\n",
            "testing": "def test_greets():\n    " + call.replace("\n", "\n    "),
        }
        config = {"timeout": 1000, "session_timeout": 5000}
        self.problem = make_problem(
            {"test_checkpoint_1.py": test.get(state, "def test_greets(run):\n    run(timeout=1000)\n")}, config=config
        )
        source = call if state == "running the submission" else GOOD
        self.submission: Any = Stalling(self.unpacking) if state == "unpacking" else {**FILES, "main.py": source}
        self.environment = environment_spec({"setup": {"eval_commands": [sleep]}} if state == "set-up" else {})

    def is_there(self) -> bool:
        return self.unpacking.is_set() if self.state == "unpacking" else bool(sleeping(self.number))

    def wait(self) -> None:
        until = time.monotonic() + DEADLINE_S
        while not self.is_there():
            assert time.monotonic() < until, f"never {self.state}"
            time.sleep(0.01)


STATES = ["unpacking", "set-up", "running the submission", *in_long("collecting", "testing")]


@pytest.fixture(params=STATES)
def stall(request: pytest.FixtureRequest, make_problem: Any, environment_spec: Any) -> Stall:
    return Stall(request.param, make_problem, environment_spec)


def sessions(cache: Cache) -> set[Path]:
    """Without those of templates, which stay while the evaluator is open."""
    return {folder for folder in cache.sessions.iterdir() if not (folder / "template.log").exists()}


def test_a_task_that_is_cancelled_in_any_state_leaves_nothing(evaluator, stall, cache, problem):
    before = sessions(cache)

    async def cancelled() -> bool:
        call = evaluator.evaluate_async(stall.submission, stall.problem, 1, stall.environment)
        task = asyncio.create_task(call)
        await asyncio.to_thread(stall.wait)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert asyncio.run(cancelled())
    assert left(sleeping(stall.number)) == []
    assert sessions(cache) == before
    assert left(processes_in(cache.root)) == []
    if stall.state == "running the submission":
        assert evaluator.evaluate(FILES, problem, 1).passes(), "the evaluator goes on"


def test_closing_the_outcomes_cancels_what_is_in_flight(evaluator, make_problem, environment_spec, cache, problem):
    stall, before = Stall("running the submission", make_problem, environment_spec), sessions(cache)
    stalled = EvaluatorRequest(stall.submission, stall.problem, 1)
    outcomes = evaluator.map([stalled, EvaluatorRequest(FILES, problem, 1)])
    assert next(outcomes).index == 1
    stall.wait()
    outcomes.close()
    assert left(sleeping(stall.number)) == []
    assert sessions(cache) == before


@pytest.mark.parametrize("way", ["map", *in_long("evaluate")])
def test_closing_the_evaluator_cancels_what_runs(evaluator, make_problem, environment_spec, cache, way):
    stall, before, ended = Stall("running the submission", make_problem, environment_spec), sessions(cache), []

    def run() -> None:
        try:
            if way == "evaluate":
                evaluator.evaluate(stall.submission, stall.problem, 1)
            else:
                list(evaluator.map([EvaluatorRequest(stall.submission, stall.problem, 1)]))
        except EvaluationCancelledError as error:
            ended.append(str(error))

    caller = threading.Thread(target=run)
    caller.start()
    stall.wait()
    evaluator.close(cancel=True)
    caller.join(DEADLINE_S)
    assert ended == ["stopped before its end"]
    assert left(sleeping(stall.number)) == []
    assert sessions(cache) == before


PROGRAM = """
import sys
from slop_code import Evaluator

with Evaluator(1, "local") as evaluator:
    evaluator.evaluate(sys.argv[1], sys.argv[2], 1)
"""


def test_ctrl_c_ends_the_evaluation_and_cleans_up(make_problem, environment_spec, make_submission, cache):
    stall, before = Stall("running the submission", make_problem, environment_spec), sessions(cache)
    words = [sys.executable, "-c", PROGRAM, str(make_submission(stall.submission)), str(stall.problem.path)]
    environment = {**os.environ, "SCBENCH_CACHE_DIR": str(cache.root)}
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as program:
        stall.wait()
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=DEADLINE_S)
    assert "KeyboardInterrupt" in errors
    assert program.returncode == -signal.SIGINT
    assert left(sleeping(stall.number)) == []
    assert sessions(cache) == before


MAX_ROUNDS = 3
"""A module that is loaded late, as on a busy machine, counts once; what evaluations leave counts each time."""


def allocated_blocks():
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.parametrize(("warm", "more"), [(8, 4), *in_long((50, 150))])
def test_many_evaluations_leave_nothing_that_grows(evaluator, problem, cache, make_submission, warm, more):
    """Counts, not times: descriptors, threads, objects in memory, sessions, and at the end processes."""
    folder = make_submission(FILES)
    sources = [folder, FILES, packed(folder), {"../x": ""}, {**FILES, "main.py": "raise SystemExit(1)"}]

    def run(count: int) -> dict[str, int]:
        requests = (EvaluatorRequest(sources[number % len(sources)], problem, 1) for number in range(count))
        for outcome in evaluator.map(requests):
            assert (outcome.results is None) == (outcome.index % len(sources) == 3)
            assert outcome.results is None or not outcome.results.infrastructure_failure
        return {
            "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": threading.active_count(),
            "sessions": len(sessions(cache)),
        }

    before, growth = run(warm), []
    while len(growth) < MAX_ROUNDS and not (growth and growth[-1] < 2_000 + 10 * more):
        blocks = allocated_blocks()
        assert run(more) == before
        growth.append(allocated_blocks() - blocks)
    assert min(growth) < 2_000 + 10 * more, "an evaluation leaves thousands of blocks if its result is kept"
    evaluator.close()
    assert left(processes_in(cache.root)) == []
