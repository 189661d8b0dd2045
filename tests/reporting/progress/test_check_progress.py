"""Progress of a check, by its events."""

import pytest

from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.reporting.progress.check_progress import CheckProgress

STEP = ProgressEvent(ProgressKind.CHECK_STEP, "strength", "p", count=5, total=7)
REFERENCE = ProgressEvent(ProgressKind.EVALUATE_REFERENCE, problem="p", checkpoint="c")
SETUP = ProgressEvent(ProgressKind.RUN_SETUP_COMMAND, "make")
RUN = ProgressEvent(ProgressKind.RUN_TESTS, count=40)


def mutants(count, total=20, checkpoint="c"):
    return ProgressEvent(ProgressKind.EVALUATE_MUTANTS, checkpoint=checkpoint, count=count, total=total)


def repeated(count):
    return ProgressEvent(ProgressKind.REPEAT_TESTS, "on a busy machine", checkpoint="c", count=count, total=4)


def results(count):
    return ProgressEvent(ProgressKind.TESTS_DONE, count=count, total=40, passed=count)


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([], ""),
        ([STEP], "step 5 of 7: strength"),
        ([STEP, mutants(0)], "step 5 of 7: strength, c, 0 of 20 mutants tried"),
        ([STEP, mutants(0), mutants(10)], "step 5 of 7: strength, c, 10 of 20 mutants tried (about 10 s left)"),
        ([STEP, mutants(0, 0), mutants(10, 0)], "step 5 of 7: strength, c, 10 mutants tried"),
        ([STEP, mutants(0), mutants(20), mutants(0, 20, "d")], "step 5 of 7: strength, d, 0 of 20 mutants tried"),
        ([STEP, mutants(0), results(3), results(4)], "step 5 of 7: strength, c, 0 of 20 mutants tried"),
        ([STEP, REFERENCE], "step 5 of 7: strength, reference of c"),
        ([STEP, REFERENCE, SETUP], "step 5 of 7: strength, reference of c, set-up: make"),
        (
            [STEP, REFERENCE, SETUP, RUN, results(0), results(1), results(11)],
            "step 5 of 7: strength, reference of c, 11/40 tests, about 29 s left",
        ),
        ([STEP, repeated(0)], "step 5 of 7: strength, c, run 1 of 4: on a busy machine"),
        (
            [STEP, repeated(0), results(0), repeated(2), results(3)],
            "step 5 of 7: strength, c, run 3 of 4: on a busy machine (about 10 s left), 3/40 tests",
        ),
        ([REFERENCE, results(2), STEP], "step 5 of 7: strength"),
    ],
)
def test_the_text_follows_the_events(events, text):
    """An event every 10 seconds."""
    now = 0.0
    progress = CheckProgress(lambda: now)
    for event in events:
        now += 10.0
        progress(event)
    assert progress.text() == text


def test_names_are_no_commands_of_the_terminal():
    progress = CheckProgress()
    progress(mutants(0, checkpoint="\x1b]0;owned\x07\n"))
    assert progress.text() == "\\x1b]0;owned\\x07\\n, 0 of 20 mutants tried"
