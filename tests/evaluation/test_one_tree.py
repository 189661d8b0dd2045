"""A verdict is of one tree; where there is none anyway, the reason stays the one there was first."""

from __future__ import annotations

from pathlib import Path

import pytest

from slop_code.errors import InfrastructureError, SubmissionError
from slop_code.evaluation import pytest_runner
from slop_code.evaluation.pairs import Part
from slop_code.evaluation.pytest_runner import not_one_tree
from slop_code.evaluation.roster import Roster
from slop_code.execution.progress_events import ProgressKind
from slop_code.execution.submission import Tree

ONE, OTHER = Tree("1"), Tree("2")
REFUSED = InfrastructureError("/s: cannot be read to its end: Too many open files")
GONE = SubmissionError("/s: there is no such folder")
CHANGED = "/s: the submission changed while it was evaluated; evaluate it when nothing writes to it"


@pytest.mark.parametrize(
    ("before", "now", "told"),
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
def test_two_readings(before, now, told):
    def reading(found):
        def value():
            if isinstance(found, Exception):
                raise found
            return found

        return value

    why = not_one_tree([Part(Roster(()))], Path("/s"), reading(before), reading(now))
    assert (None if why is None else str(why)) == told
    another = [Part(Roster(()), reason="pytest exited with 4")]
    assert not_one_tree(another, Path("/s"), reading(before), reading(now)) is None


def refuse(_):
    raise REFUSED


@pytest.mark.parametrize("trouble", ["changed", "unreadable"])
def test_what_set_up_said_is_not_hidden(make_problem, make_submission, evaluate, monkeypatch, trouble):
    problem = make_problem({"test_checkpoint_1.py": "def test_it():\n    pass\n"})
    submission = make_submission({"main.py": ""})
    if trouble == "unreadable":
        monkeypatch.setattr(pytest_runner, "read_tree", refuse)

    def write(event):
        if event.name.startswith("echo") and trouble == "changed":
            (submission / "more.py").touch()

    commands = {"setup": {"commands": ["echo no such package; exit 3"]}}
    results = evaluate(problem, submission, sandbox="none", environment=commands, progress=write)
    assert results.infrastructure_failure_reason.startswith("set-up: `echo no such package; exit 3` exited with 3")
    assert "no such package" in results.infrastructure_failure_reason.partition("\n")[2]


def test_tests_that_are_damaged_while_they_are_used(make_problem, make_submission, evaluate, cache, tmp_path):
    """Whatever they said, nobody knows which tests said it; the next evaluation has them as they are."""
    problem = make_problem({"test_checkpoint_1.py": f"# {tmp_path}\n\ndef test_it():\n    assert 1 == 2\n"})

    def write(event):
        if event.kind is ProgressKind.RUN_TESTS:
            for path in cache.root.glob("tests/*/tests/test_checkpoint_1.py"):
                if str(tmp_path) in (text := path.read_text()):
                    path.write_text(text.replace("1 == 2", "1 == 1"))

    submission = make_submission({"main.py": ""})
    results = evaluate(problem, submission, sandbox="none", progress=write)
    assert "was damaged while it was in use" in results.infrastructure_failure_reason
    again = evaluate(problem, submission, sandbox="none")
    assert (again.infrastructure_failure_reason, again.passed["all-cases"]) == (None, False)
