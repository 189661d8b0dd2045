"""Progress while tests run: events from the judge's stream, and what terminals and pipes show of them.

The submission stays in its second test until it is let go, so that no test depends on how long anything takes.
"""

import json
import os
import subprocess
import textwrap

import pytest

from slop_code.evaluation import ProblemConfig
from slop_code.execution.progress_events import ProgressKind
from tests.command import SLOP_CODE
from tests.e2e.conftest import PROBLEMS, Evaluator
from tests.marks import in_long

SUMS = PROBLEMS / "sums"
CLEAR = "\r\x1b[K"


@pytest.fixture
def submission(sums, staying, tmp_path):
    """Passes all tests, and stays in that of words that are no numbers."""
    first = f"if 'two' in sys.argv:\n{textwrap.indent(staying.first, '    ')}"
    return sums.run("run", mains={"checkpoint_1": sums.main(str(tmp_path), first=first)})


@pytest.fixture
def shown(cache, warmed, tmp_path):
    """`shown("eval", run, terminal=True)`: a command with its standard error on a terminal or a pipe."""
    started = []

    def start(*words, terminal, term="xterm"):
        ours, theirs = os.openpty() if terminal else os.pipe()
        with (tmp_path / "out").open("wb") as out:
            process = subprocess.Popen(
                [SLOP_CODE, *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=theirs,
                env={**os.environ, "SCBENCH_CACHE_DIR": str(cache.root), "TERM": term, "COLUMNS": "100"},
                start_new_session=True,
            )
        os.close(theirs)
        started.append((process, ours))
        return Evaluator(process, ours, cache)

    yield start
    for process, ours in started:
        os.close(ours)
        if process.poll() is None:
            process.kill()
            process.wait()


def left_on_screen(said):
    """Lines as they stay, when everything that is redrawn is gone."""
    return [line.rstrip("\r").rpartition(CLEAR)[2] for line in said.split("\n")]


def eval_snapshot(run):
    return "eval-snapshot", run / "sums/checkpoint_1/snapshot", "-p", SUMS, "-c", "1"


def test_a_terminal_shows_a_bar_that_vanishes(shown, submission, staying, tmp_path):
    evaluator = shown(*eval_snapshot(submission), terminal=True)
    evaluator.until("━━━━━━━━──────── 1/2 tests, 1 passed, 0 failed, ")
    staying.let_go(*staying.arrived(1))
    assert evaluator.end() == 0, evaluator.said
    assert not [line for line in left_on_screen(evaluator.said) if "tests" in line]
    assert "PASSED (all-cases): 2 of 2 tests passed" in (tmp_path / "out").read_text()


@pytest.mark.long  # waits until the first line is due
def test_a_pipe_gets_a_line_from_time_to_time(shown, submission, staying, tmp_path):
    evaluator = shown(*eval_snapshot(submission), "--json", terminal=False)
    evaluator.until("· 1/2 tests, 1 passed, 0 failed, ")
    staying.let_go(*staying.arrived(1))
    assert evaluator.end() == 0, evaluator.said
    assert "\r" not in evaluator.said
    assert json.loads((tmp_path / "out").read_text())["checkpoint_name"] == "checkpoint_1"


def test_nothing_is_shown_where_it_is_to_be_quiet(shown, sums, tmp_path):
    run = sums.run("quiet", mains={"checkpoint_1": sums.main(str(tmp_path))})
    evaluator = shown("-q", *eval_snapshot(run), "--json", terminal=True)
    assert evaluator.end() == 0
    assert evaluator.said == ""
    assert json.loads((tmp_path / "out").read_text())["pass_counts"]["Core"] == 1


def test_the_live_view_of_a_run_shows_tests_within_checkpoints(shown, submission, staying):
    evaluator = shown("eval", submission, "--problems-dir", PROBLEMS, "--live-progress", terminal=True)
    evaluator.until("1/2 tests")
    assert "1 running (1 of 2 tests)" in evaluator.said
    staying.let_go(*staying.arrived(1))
    evaluator.end()
    assert "1 of 1 done" in evaluator.said


def test_a_terminal_that_cannot_redraw_gets_lines(shown, sums, tmp_path):
    run = sums.run("lines", mains={"checkpoint_1": sums.main(str(tmp_path))})
    evaluator = shown("eval", run, "--problems-dir", PROBLEMS, terminal=True, term="dumb")
    evaluator.end()
    assert "[1/1] PASSED lines/sums/checkpoint_1 2/2" in evaluator.said


def test_a_check_shows_its_step_on_a_terminal(shown, make_problem, tmp_path):
    problem = make_problem(
        {"test_checkpoint_1.py": "def test_it(run):\n    assert run().stdout == 'x\\n'\n"},
        files={"checkpoint_1.md": "Print x.\n", "solutions/checkpoint_1/main.py": "print('x')\n"},
    )
    evaluator = shown("problems", "check", problem.path, "--step", "layout", "--step", "reference", terminal=True)
    evaluator.end()
    assert f"{CLEAR}· step 1 of 2: layout" in evaluator.said
    assert f"{CLEAR}· step 2 of 2: reference, reference of checkpoint_1" in evaluator.said
    assert not [line for line in left_on_screen(evaluator.said) if "step" in line]
    assert "reference  ok" in (tmp_path / "out").read_text()


@pytest.fixture
def observed(evaluate):
    """(done, total, passed, failed) of each event, and the results."""

    def run(problem, submission, checkpoint=1, **options):
        events = []
        results = evaluate(problem, submission, checkpoint, progress=events.append, **options)
        counts = [(event.count, event.total, event.passed, event.failed)
                  for event in events if event.kind is ProgressKind.TESTS_DONE]  # fmt: skip
        return counts, results

    return run


@pytest.mark.parametrize("sandbox", ["none", "bubblewrap", *in_long("docker")])
def test_the_last_counts_are_those_of_the_result(observed, make_submission, sums, sandbox):
    problem = ProblemConfig.from_yaml(SUMS)
    counts, results = observed(problem, make_submission({"main.py": sums.main(sandbox, "wrong")}), 3, sandbox=sandbox)
    assert results.infrastructure_failure_reason is None
    assert counts[0] == (0, 4, 0, 0)
    assert counts[-1] == (4, 4, 3, 1)


def test_pairs_that_run_at_a_time_are_counted_together(observed, make_submission, sums):
    problem = ProblemConfig.from_yaml(SUMS).model_copy(update={"parallel": 2, "parallel_by": "test"})
    counts, _ = observed(problem, make_submission({"main.py": sums.main("pairs", "wrong")}), 3)
    assert (counts[0], counts[-1]) == ((0, 4, 0, 0), (4, 4, 3, 1))


FORGES = """
import json, os
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), ".scbench/stream.jsonl")
with open(path, "ab", buffering=0) as stream:
    for number in range(20_000):
        forged = {"kind": "result", "nodeid": f"test_checkpoint_1.py::forged{number}", "status": "passed"}
        stream.write(json.dumps(forged).encode() + b"\\n\\x1b]0;owned\\x07\\n")
    stream.write(b"x" * (5 << 20) + b"\\n")
"""


@pytest.mark.long
def test_a_submission_that_floods_the_stream_changes_no_result(observed, evaluate, make_submission, sums):
    """Without a sandbox it can write there; what the reports say counts."""
    problem = ProblemConfig.from_yaml(SUMS)
    submission = make_submission({"main.py": sums.main("floods", "wrong", first=FORGES)})
    counts, results = observed(problem, submission, sandbox="none")
    assert all(done <= total for done, total, _, _ in counts)
    without = evaluate(problem, submission, sandbox="none")
    assert [test.status for test in results.tests] == [test.status for test in without.tests] == ["failed", "passed"]
    assert results.infrastructure_failure_reason == without.infrastructure_failure_reason
