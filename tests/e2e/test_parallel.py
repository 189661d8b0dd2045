"""Several pairs for one checkpoint: the same results as one pair, test by test."""

import contextlib
import os
import select
import signal
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from slop_code.evaluation import ProblemConfig
from slop_code.evaluation.result_files.evidence_files import EVIDENCE_FILES, ROSTER, SHOWN
from slop_code.evaluation.test_code.test_inputs import INPUTS
from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope
from slop_code.execution.processors import available_cpus
from tests.command import SLOP_CODE
from tests.conftest import PROBLEM_CONFTEST
from tests.e2e.test_hangs import left_alive, processes
from tests.factories import statuses

EXAMPLES = Path(__file__).parents[2] / "examples"
PAIRS = min(2, available_cpus())
PATIENCE_S = 600
several = pytest.mark.skipif(available_cpus() < 2, reason="one processor has one pair")

pytestmark = pytest.mark.e2e

SERVER = """
    import http.server
    import os
    import sys

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(str(os.getpid()).encode())

        def log_message(self, *_):
            pass

    if sys.argv[1:] == ["serve"]:
        server = http.server.HTTPServer(("127.0.0.1", 8080), Handler)
        print("ready", flush=True)
        server.serve_forever()
    print(*sys.argv[1:])
"""
CONFTEST_END = """

@pytest.fixture(scope="session")
def sessions():
    return []


@pytest.fixture(scope="module")
def server(entrypoint):
    process = subprocess.Popen([*entrypoint, "serve"], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\\n"
    yield process
    process.kill()
    process.wait()
"""
FIRST = """
    import urllib.request

    import pytest

    def get():
        return urllib.request.urlopen("http://127.0.0.1:8080", timeout=25).status

    def test_serves(server): assert get() == 200

    def test_notes_it(sessions): sessions.append("first")

    def test_kills_its_server(server):
        server.kill()
        server.wait()
        with pytest.raises(OSError):
            while True:  # its end takes a moment
                get()

    def test_noted(sessions): assert sessions == ["first"]

    def test_is_gone_for_the_rest_of_the_file(server): assert get() == 200

    def test_has_a_workspace_of_its_own(): open("here.txt", "x").close()

    @pytest.mark.error
    @pytest.mark.parametrize("word", ["a", "b::c", "d[0]", "é", ""])
    def test_says(run, word): assert run(word).stdout == word + "\\n" and word != "b::c"
"""
SECOND = """
    import urllib.request

    import pytest

    state = []

    class TestInOrder:
        def test_first(self): state.append(1)
        def test_second(self): assert state == [1]

    def test_serves_here_too(server):
        assert urllib.request.urlopen("http://127.0.0.1:8080", timeout=25).status == 200

    def test_has_a_workspace_of_its_own(): open("left.txt", "x").close()

    @pytest.mark.skip(reason="not today")
    def test_skipped(): pass

    @pytest.mark.xfail
    def test_expected(): assert False

    @pytest.mark.xfail
    def test_unexpected(): pass

    @pytest.fixture
    def broken(): raise ValueError("broken")

    @pytest.mark.functionality
    def test_error(broken): pass
"""


def comparable(results):
    """All that a reader learns but times, usage, addresses and the numbers of temporary folders."""
    apart = {"duration_ms": 0, "failure_message": None, "calls": [], "output": None, "usage": None}
    return {
        "tests": [test.model_copy(update=apart) for test in results.tests],
        "reason": results.infrastructure_failure_reason,
        "exit": results.pytest_exit_code,
        "passed": results.passed,
        "deselected": results.deselected,
        "digests": results.provenance.digests,
        "command": results.provenance.command,
        "evidence": results.evidence,
        "warnings": results.warnings,
    }


def messages(results):
    return [(test.failure_message or "").splitlines()[-1:] for test in results.tests]


def parallel(problem, by="file", pairs=2):
    """The same problem in the same folder."""
    other = problem.model_copy(update={"parallel": pairs, "parallel_by": by})
    assert other.path == problem.path
    return other


@pytest.fixture(scope="module")
def miniature(make_problem, make_submission):
    tests = {
        "conftest.py": PROBLEM_CONFTEST + CONFTEST_END,
        "test_checkpoint_1.py": FIRST,
        "test_checkpoint_2.py": SECOND,
    }
    return make_problem(tests), make_submission({"main.py": SERVER})


@pytest.fixture(scope="module")
def serial(miniature, evaluate):
    return evaluate(*miniature, 2)


@pytest.mark.long
@pytest.mark.parametrize("sandbox", ["bubblewrap", "docker"])
def test_a_miniature_with_everything(miniature, serial, evaluate, tmp_path, sandbox):
    problem, submission = miniature
    (tmp_path / ".scbench").mkdir()
    (tmp_path / ".scbench" / "pytest.log").write_text("of one pair")
    both = evaluate(parallel(problem), submission, 2, sandbox=sandbox, output_dir=tmp_path)
    alone = serial if sandbox == "bubblewrap" else evaluate(problem, submission, 2, sandbox=sandbox)
    assert statuses(both) == statuses(alone)
    assert comparable(both) == comparable(alone)
    assert messages(both) == messages(alone)
    alone.isolation.pop("judge", None), both.isolation.pop("judge", None)  # a template is there from the second on
    assert (alone.isolation["pairs"], both.isolation) == (1, {**alone.isolation, "pairs": PAIRS})
    assert {test.status for test in both.tests} == {"passed", "failed", "skipped", "error"}
    assert sum(test.status == "passed" for test in both.tests) == 13
    folders = [str(number) for number in range(1, PAIRS + 1)] if PAIRS > 1 else ["."]
    kept = {str(path.relative_to(tmp_path / ".scbench")) for path in (tmp_path / ".scbench").rglob("*.*")}
    names = set(EVIDENCE_FILES) - {SHOWN, ROSTER, INPUTS}
    assert kept == {ROSTER, INPUTS, *(os.path.normpath(f"{folder}/{name}") for folder in folders for name in names)}


@pytest.fixture(scope="module")
def alone(evaluate):
    """Each example by one pair, once."""
    done = {}

    def run(name, checkpoint, submission):
        if name not in done:
            problem = ProblemConfig.from_yaml(EXAMPLES / "problems" / name)
            done[name] = problem, evaluate(problem, submission, checkpoint)
        return done[name]

    return run


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "checkpoint", "submission", "by"),
    [
        ("larder", 2, EXAMPLES / "runs" / "drifting" / "larder" / "checkpoint_2" / "snapshot", "file"),
        ("larder", 2, EXAMPLES / "runs" / "drifting" / "larder" / "checkpoint_2" / "snapshot", "test"),
        ("corkboard", 2, EXAMPLES / "problems" / "corkboard" / "solutions" / "checkpoint_1", "file"),
    ],
)
def test_examples_have_equal_results_in_parallel(evaluate, alone, name, checkpoint, submission, by):
    problem, one = alone(name, checkpoint, submission)
    both = evaluate(parallel(problem, by), submission, checkpoint)
    assert comparable(both) == comparable(one)
    assert both.isolation["pairs"] == PAIRS
    assert len({test.status for test in both.tests}) > 1


@pytest.mark.parametrize(
    ("arguments", "left", "pairs"),
    [
        (["-k", "serves_here_too or InOrder"], 3, PAIRS),
        (["-k", "no_such_test"], 0, PAIRS),
        (["-x", "-k", "InOrder"], 2, 1),
    ],
)
def test_pytest_arguments_select_the_same_tests_in_parallel(miniature, evaluate, arguments, left, pairs):
    problem, submission = miniature
    alone = evaluate(problem, submission, 2, pytest_args=arguments)
    both = evaluate(parallel(problem), submission, 2, pytest_args=arguments)
    assert (len(both.tests), both.isolation["pairs"]) == (left, pairs)
    assert {**comparable(both), "reason": None} == {**comparable(alone), "reason": None}
    reasons = [(results.infrastructure_failure_reason or "").partition("\n")[0] for results in (alone, both)]
    assert reasons == ["" if left else "the pytest arguments select none of the tests"] * 2


@pytest.mark.long  # waits for a session timeout
def test_a_hang_in_one_pair_leaves_the_other_alone(make_problem, make_submission, evaluate, tmp_path):
    tests = {
        "test_checkpoint_1.py": "def test_a(): pass\ndef test_b(): assert False\ndef test_c(): pass\n",
        "test_checkpoint_2.py": "import signal, threading\ndef test_first(): pass\n"
        "def test_hangs():\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
        "    threading.Event().wait()\n"
        "def test_last(): pass\n",
    }
    problem = make_problem(tests, config={"session_timeout": 20, "parallel": 2})
    results = evaluate(problem, make_submission({"main.py": ""}), 2, output_dir=tmp_path)
    assert {test.id: test.status for test in results.tests} == {
        **{"test_a": "passed", "test_b": "failed", "test_c": "passed"},
        **{"test_first": "passed", "test_hangs": "error", "test_last": "error"},
    }
    which = "pair 2 of 2: " if PAIRS > 1 else ""
    reason = "session timeout of 20 s while running test_checkpoint_2.py::test_hangs"
    assert results.infrastructure_failure_reason == which + reason
    assert [test.failure_message for test in results.tests[4:]] == [f"{reason} (this test was running)", reason]
    assert results.pytest_exit_code == -1
    assert not any(results.passed.values())
    assert results.evidence == "stream"


def test_one_big_file_is_split_by_test(make_problem, make_submission, evaluate, tmp_path):
    """Each test sees those that ran before it in its own process; all of a file by file, only some by test."""
    text = "seen = []\n" + "".join(
        f"def test_{number}(tmp_path):\n    seen.append({number})\n    assert seen == {list(range(number + 1))}\n"
        for number in range(4)
    )
    submission = make_submission({"main.py": ""})
    problem = make_problem({"test_checkpoint_1.py": text}, config={"parallel": 2, "parallel_by": "file"})
    whole = evaluate(problem, submission)
    assert (whole.passed["all-cases"], whole.isolation["pairs"]) == (True, 1)
    split = evaluate(parallel(problem, "test"), submission, output_dir=tmp_path)
    assert split.isolation["pairs"] == PAIRS
    assert [test.id for test in split.tests] == [f"test_{number}" for number in range(4)]
    assert split.passed["all-cases"] is (PAIRS == 1)


def test_without_boxes_there_is_one_pair_and_a_warning(miniature, evaluate):
    problem, submission = miniature
    results = evaluate(parallel(problem), submission, 2, sandbox="none", pytest_args=["-k", "InOrder"])
    assert results.isolation["pairs"] == 1
    assert results.warnings == ["parallel is ignored: with isolation: none all pairs would share one network"]


@several
def test_a_forged_word_about_another_pairs_test_is_no_verdict(make_problem, make_submission, evaluate):
    """In the judge's own process a submission can write what it likes; its pair has a say in its own tests only."""
    tests = {
        "test_checkpoint_1.py": "def test_a():\n    import main\n    main.forge()\n",
        "test_checkpoint_2.py": "def test_b(): assert False\n",
    }
    forge = """
        import atexit
        import json

        def forge():
            atexit.register(forged, ".scbench/pytest-report.json")

        def forged(path):
            with open(path) as file:
                report = json.load(file)
            report["tests"].append({**report["tests"][0], "nodeid": "test_checkpoint_2.py::test_b"})
            with open(path, "w") as file:
                json.dump(report, file)
    """
    problem = make_problem(tests, config={"in_process": True, "parallel": 2})
    results = evaluate(problem, make_submission({"main.py": forge}), 2)
    assert {test.id: test.status for test in results.tests} == {"test_a": "passed", "test_b": "failed"}
    assert results.infrastructure_failure_reason == (
        "pair 1 of 2: reported but not among the tests: 1, the first: test_checkpoint_2.py::test_b"
    )


@pytest.mark.parametrize("pairs", [1, 2])
def test_a_stop_is_no_result(miniature, serial, evaluate, pairs):
    problem, submission = miniature
    token = CancelToken()
    token.cancel()
    try:
        with cancel_scope(token), pytest.raises(EvaluationCancelledError):
            evaluate(parallel(problem, pairs=pairs), submission, 2)
    finally:
        token.close()


@several
def test_an_interrupt_ends_all_pairs(make_problem, make_submission, cache, need_bubblewrap, tmp_path):
    need_bubblewrap()
    token = f"token-{uuid.uuid4().hex}"
    text = f"def test_long(run): run({token!r}, timeout=60)\n"
    problem = make_problem({"test_checkpoint_1.py": text, "test_checkpoint_2.py": text}, config={"parallel": 2})
    submission = make_submission({"main.py": "import time\ntime.sleep(60)\n"})
    argv = [SLOP_CODE, "eval-snapshot", submission, "-p", problem.path, "-c", "2", "-o", tmp_path]
    with subprocess.Popen(
        argv,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # Where this suite itself runs in the background, interrupts would be ignored from the start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as evaluator:
        descriptor = os.pidfd_open(evaluator.pid)
        try:
            until = time.monotonic() + PATIENCE_S
            while len(subjects(token)) < 2 and time.monotonic() < until:
                assert not select.select([descriptor], [], [], 0.05)[0]
            running = len(subjects(token))
        finally:
            os.close(descriptor)
            os.killpg(evaluator.pid, signal.SIGINT)
        _, printed = evaluator.communicate(timeout=PATIENCE_S)
    assert running == 2
    assert b"Traceback" not in printed
    assert left_alive(token) == []
    assert evaluator.returncode == 130
    assert not (tmp_path / "evaluation.json").exists()


def subjects(token):
    """Those of its processes that are the submission's, one for each pair."""
    found = []
    for process in processes(token):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            found += [process] if words[0].endswith(b"python") else []
    return found
