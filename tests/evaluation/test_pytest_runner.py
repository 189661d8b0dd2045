"""Changes of the submission and of staged tests during an evaluation."""

from __future__ import annotations

from pathlib import Path

import pytest

from slop_code.errors import InfrastructureError, SubmissionError
from slop_code.evaluation.input_checks import submission_change
from slop_code.execution.progress_events import ProgressKind
from slop_code.execution.submission import SubmissionTree

ONE, OTHER = SubmissionTree("1"), SubmissionTree("2")
REFUSED = InfrastructureError("/s: cannot be read to its end: Too many open files")
GONE = SubmissionError("/s: there is no such folder")
CHANGED = "/s: the submission changed while it was evaluated; evaluate it when nothing writes to it"


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        (ONE, ONE, None),
        (ONE, OTHER, CHANGED),
        (ONE, GONE, CHANGED),
        (ONE, FileNotFoundError(), CHANGED),
        (ONE, REFUSED, str(REFUSED)),
        (REFUSED, ONE, str(REFUSED)),
        (GONE, ONE, CHANGED),
    ],
)
def test_a_submission_that_reads_differently_has_changed(before, now, reason):
    def reading(tree):
        def value():
            if isinstance(tree, Exception):
                raise tree
            return tree

        return value

    change = submission_change(Path("/s"), reading(before), reading(now))
    assert (None if change is None else str(change)) == reason


def test_a_failed_set_up_stays_the_reason(make_problem, make_submission, evaluate):
    problem = make_problem({"test_checkpoint_1.py": "def test_it():\n    pass\n"})
    submission = make_submission({"main.py": ""})

    def write(event):
        if event.name.startswith("echo"):
            (submission / "more.py").touch()

    commands = {"setup": {"commands": ["echo no such package; exit 3"], "on_failure": "infrastructure"}}
    results = evaluate(problem, submission, sandbox="none", environment=commands, progress=write)
    assert results.infrastructure_failure_reason.startswith("set-up: `echo no such package; exit 3` exited with 3")
    assert "no such package" in results.infrastructure_failure_reason.partition("\n")[2]


def test_damage_of_the_tests_while_they_run_leaves_no_verdict(make_problem, make_submission, evaluate, cache, tmp_path):
    """Whatever they said, nobody knows which tests said it; the next evaluation has them as they are."""
    problem = make_problem({"test_checkpoint_1.py": f"# {tmp_path}\n\ndef test_it():\n    assert 1 == 2\n"})

    def write(event):
        if event.kind is ProgressKind.RUN_TESTS:
            for path in cache.root.glob("tests/*/tests/test_checkpoint_1.py"):
                if str(tmp_path) in (text := path.read_text()):
                    path.write_text(text.replace("1 == 2", "1 == 1"))

    submission = make_submission({"main.py": ""})
    results = evaluate(problem, submission, sandbox="none", progress=write)
    assert "a cache entry was damaged while in use" in results.infrastructure_failure_reason
    again = evaluate(problem, submission, sandbox="none")
    assert (again.infrastructure_failure_reason, again.passed["all-cases"]) == (None, False)
