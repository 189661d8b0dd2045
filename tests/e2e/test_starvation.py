"""Submissions that are starved: other processes have their processor."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from slop_code.evaluation import CorrectnessResults, PytestRunner
from slop_code.evaluation.grading import NO_MEMORY
from slop_code.evaluation.report import Attempt, TestAttempt
from slop_code.evaluation.usage.starvation import waited_for_others
from slop_code.execution.helper import helper_path
from slop_code.execution.progress_events import ProgressKind
from slop_code.runs.executors.worker import run_job
from slop_code.runs.jobs.job_records import JobRequest
from slop_code.runs.result_archive import read_archived_results
from slop_code.verification.stored_document import read_document
from slop_code.verification.verify import verify

TESTS = """
def test_before(run):
    assert run("write").returncode == 0


def test_slow(run):
    assert run("work", timeout={limit}).stdout == "what the first test wrote"
"""
SUBMISSION = """
import sys
import time

if sys.argv[1] == "write":
    with open("left", "w") as file:
        file.write("what the first test wrote")
else:
    while time.process_time() < {seconds}:
        pass
    print(open("left").read(), end="")
"""


MAIN = threading.main_thread().native_id


class Hogs:
    """Processes that keep one processor busy, on which this thread and what it starts run, too."""

    def __init__(self, count):
        self.count = count
        self.usual = os.sched_getaffinity(MAIN)
        self.processor = {min(self.usual)}
        self.processes = []
        self.output = b""
        self.runs = 0

    def pin(self):
        os.sched_setaffinity(MAIN, self.processor)

    def start(self):
        # A session each: where the kernel groups processes by session, they count as many.
        argv = ["taskset", "-c", str(min(self.processor)), "sh", "-c", "while :; do :; done"]
        self.processes += [subprocess.Popen(argv, start_new_session=True) for _ in range(self.count)]

    def stop(self):
        os.sched_setaffinity(MAIN, self.usual)
        self.end()

    def end(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.processes = []

    def follow(self, text):
        """Start when the slow test does, in the first run, and end with it."""
        self.output += text
        if b"::test_slow" in self.output and not self.runs:
            self.runs += 1
            self.start()
        if b"FAILED" in self.output:
            self.end()


@pytest.fixture
def hogs():
    with contextlib.ExitStack() as stack:

        def make(count):
            made = Hogs(count)
            stack.callback(made.stop)
            return made

        yield make


@pytest.fixture
def inputs(make_problem, make_submission, need):
    def make(seconds, limit):
        need("bubblewrap")
        problem = make_problem({"test_checkpoint_1.py": TESTS.format(limit=limit)})
        return problem, make_submission({"main.py": SUBMISSION.format(seconds=seconds)})

    return make


@pytest.fixture
def starved(inputs, environment_spec, cache, tmp_path):
    def run(seconds, limit, **options):
        problem, submission = inputs(seconds, limit)
        runner = PytestRunner(
            problem, problem.checkpoint(1), environment_spec(), submission, output_dir=tmp_path, cache=cache, **options
        )
        results = runner.run()
        results.save(tmp_path / "evaluation.json")
        return results

    return run


def findings(folder):
    return verify(folder, read_document(folder / "evaluation.json")).findings


def test_a_time_limit_that_struck_a_starved_submission_is_not_believed(starved, hogs, tmp_path):
    load, repeated = hogs(4), []
    load.pin()
    results = starved(0.8, 2, follow=load.follow, progress=lambda event: repeated.append((event.kind, event.count)))
    assert (ProgressKind.REPEAT_STARVED, 1) in repeated
    before, slow = results.tests
    if results.infrastructure_failure_reason is None:
        assert (before.status, slow.status, results.pytest_exit_code) == ("passed", "passed", 0)
        assert (before.attempts, results.passes("all-cases")) == ([], True)
    else:  # other tests run beside this one, and kept the processor busy during the repetition, too
        assert "the machine is busy with other work" in results.infrastructure_failure_reason
    attempt = slow.attempts[0]
    assert (attempt.status, attempt.timeout.limit_s) == ("failed", 2)
    assert waited_for_others(attempt) > 2 / 4
    assert "TimeoutExpired" in attempt.failure_message
    assert findings(tmp_path) == []
    (tmp_path / ".scbench/repeat-1/stream.jsonl").unlink()
    assert findings(tmp_path) != []


@pytest.mark.long
def test_a_machine_that_stays_busy_gives_no_verdict(starved, hogs, tmp_path):
    load = hogs(4)
    load.pin()
    load.start()
    results = starved(1.5, 2)
    assert "the machine is busy with other work" in results.infrastructure_failure_reason
    assert "test_slow waited " in results.infrastructure_failure_reason
    assert not results.passes("any")
    assert findings(tmp_path) == []


TAKES_MEMORY = """
import sys
held = bytearray(450 << 20)
print(len(held))
"""
SMALL = 400 << 20
NEEDS_MEMORY = "def test_memory(run):\n    assert run().returncode == 0\n"
EVALUATE = """
import sys
from slop_code import evaluate
evaluate(*sys.argv[1:4], sys.argv[4], output=sys.argv[5])
"""


@pytest.fixture
def small_group(unshared):
    """A command that runs another one in a control group with little memory, as in a container with a limit.

    It cannot make groups of its own.
    """
    folder, limit = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
    if not folder.exists():
        folder, limit = Path("/sys/fs/cgroup"), "memory.max"
    folder = folder / f"test-{os.getpid()}"
    swap_limits = {"memory.swap.max": 0, "memory.memsw.limit_in_bytes": SMALL}
    try:
        folder.mkdir()
        (folder / limit).write_text(str(SMALL))
        for name, value in swap_limits.items():
            if (folder / name).exists():
                (folder / name).write_text(str(value))
    except OSError as error:
        with contextlib.suppress(OSError):
            folder.rmdir()
        pytest.skip(f"no control group can be made here: {error.strerror}")
    script = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
    hide = [shutil.which(unshared[0]), *unshared[1:], "sh", "-c", script, "sh"]
    yield [str(helper_path()), "join-cgroups", str(folder / "cgroup.procs"), "--", *hide]
    for _ in range(100):  # the kernel removes ended processes from the group a moment later
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.1)
    folder.rmdir()


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        pytest.param("500M", (None, "failed", 2), id="the machine has the memory"),
        pytest.param("9999G", (NO_MEMORY, "failed", 1), id="less than a submission may use", marks=pytest.mark.long),
    ],
)
def test_a_call_that_the_machine_had_no_memory_for_is_not_believed(
    need, small_group, limit, expected, make_problem, make_submission, tmp_path
):
    need("bubblewrap")
    problem = make_problem({"test_checkpoint_1.py": NEEDS_MEMORY})
    submission = make_submission({"main.py": TAKES_MEMORY})
    environment = tmp_path / "environment.yaml"
    environment.write_text(f"type: local\nname: small\nlimits: {{memory: {limit}}}\n")
    words = [str(submission), str(problem.path), "1", str(environment), str(tmp_path / "result")]
    subprocess.run([*small_group, sys.executable, "-c", EVALUATE, *words], check=True)
    results = CorrectnessResults.load(tmp_path / "result/evaluation.json")
    (test,) = results.tests
    reason = results.infrastructure_failure_reason
    assert (reason and reason.partition(":")[0], test.status, len(test.attempts)) == expected
    assert {struck.kind for run in (test, *test.attempts) for struck in run.limits} == {"out_of_memory"}
    assert findings(tmp_path / "result") == []


@pytest.fixture
def job(inputs, environment_spec, cache, tmp_path):
    """A job of a run, as an executor runs it."""

    def make(seconds, limit):
        problem, submission = inputs(seconds, limit)
        request = JobRequest(
            problem=problem, checkpoint="checkpoint_1", environment=environment_spec(), submission=submission, digest=""
        )

        def run(name, **changes):
            folder = tmp_path / name
            folder.mkdir()
            return run_job(replace(request, **changes), cache, lambda: folder)

        return run

    return make


def test_a_job_that_was_starved_keeps_what_its_tests_said_then(job, tmp_path):
    late = TestAttempt(status="failed", duration_ms=1.0, failure_message="too late", usage=None, timeout=None)
    attempt = Attempt(reason="the machine was busy", duration=1.0)
    run = job(0, 60)
    done = run("alone", starved={"test_checkpoint_1.py::test_slow": late}, attempts=(attempt,))
    assert (done.facts.state, done.facts.attempts, done.facts.repeated, done.starved) == ("evaluated", 2, 1, {})
    before, slow = CorrectnessResults.load(tmp_path / "alone/evaluation.json").tests
    assert (before.attempts, slow.status, slow.attempts) == ([], "passed", [late])
    assert findings(tmp_path / "alone") == []


@pytest.mark.long
def test_a_starved_job_has_no_verdict_and_leaves_its_evidence(job, hogs, tmp_path):
    load = hogs(4)
    load.pin()
    load.start()
    done = job(1.5, 2)("busy")
    assert done.facts.state == "infrastructure_failure"
    assert done.facts.reason.startswith("1 of 2 tests were starved, the first: test_checkpoint_1")
    assert list(done.starved) == ["test_checkpoint_1.py::test_slow"]
    assert read_archived_results(done.archive).infrastructure_failure_reason == done.facts.reason
