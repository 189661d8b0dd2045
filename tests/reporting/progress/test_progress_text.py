import pytest

from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.reporting.progress.progress_text import progress_text


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (ProgressEvent(ProgressKind.PULL_IMAGE, "python:3.12"), "pulling python:3.12"),
        (ProgressEvent(ProgressKind.RUN_TESTS, count=3, total=1), "running 3 tests"),
        (ProgressEvent(ProgressKind.RUN_TESTS, count=3, total=2), "running 3 tests in 2 pairs"),
        (
            ProgressEvent(ProgressKind.TESTS_DONE, "/s", count=5, total=9, passed=3, failed=1),
            "5/9 tests, 3 passed, 1 failed",
        ),
        (
            ProgressEvent(ProgressKind.CHECK_STEP, "layout", problem="files", count=1, total=7),
            "step 1 of 7: layout",
        ),
        (ProgressEvent(ProgressKind.EVALUATE_MUTANTS, checkpoint="c", count=3, total=9), "c, 3 of 9 mutants tried"),
        (ProgressEvent(ProgressKind.EVALUATE_MUTANTS, checkpoint="c", count=3), "c, 3 mutants tried"),
    ],
)
def test_text_of_an_event(event, expected):
    assert progress_text(event) == expected


@pytest.mark.parametrize("kind", ProgressKind)
def test_every_kind_has_a_text(kind):
    assert progress_text(ProgressEvent(kind))


def test_steps_that_may_take_minutes_are_long():
    assert [kind.value for kind in ProgressKind if ProgressEvent(kind).is_long] == [
        "pull_image",
        "fetch_uv",
        "install_test_tools",
        "run_setup_command",
    ]
