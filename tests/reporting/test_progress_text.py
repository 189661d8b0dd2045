import pytest

from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.reporting.progress_text import progress_text


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (ProgressEvent(ProgressKind.PULL_IMAGE, "python:3.12"), "pulling python:3.12"),
        (ProgressEvent(ProgressKind.RUN_TESTS, count=3, total=1), "running 3 tests"),
        (ProgressEvent(ProgressKind.RUN_TESTS, count=3, total=2), "running 3 tests in 2 pairs"),
        (ProgressEvent(ProgressKind.CHECK_STEP, "layout", problem="files"), "checking files: layout"),
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
