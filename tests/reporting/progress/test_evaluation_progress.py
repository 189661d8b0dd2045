"""Progress of one evaluation, by its events."""

import pytest

from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.reporting.progress.evaluation_progress import EvaluationProgress, bar

COLLECT = ProgressEvent(ProgressKind.COLLECT_TESTS, problem="p", checkpoint="c")
RUN = ProgressEvent(ProgressKind.RUN_TESTS, count=40, total=1)
REPEAT = ProgressEvent(ProgressKind.REPEAT_STARVED, count=2)


def results(count, passed=None, failed=0, total=40):
    passed = count if passed is None else passed
    return ProgressEvent(ProgressKind.TESTS_DONE, count=count, total=total, passed=passed, failed=failed)


class Shown:
    def __init__(self, *, with_bar=False):
        self.now = 0.0
        self.progress = EvaluationProgress(lambda: self.now, with_bar=with_bar)

    def after(self, *events):
        """(time, event)"""
        for self.now, event in events:
            self.progress(event)
        return self.progress.text()


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([], "preparing, 0.0 s"),
        ([(2, COLLECT)], "collecting the tests of p c, 2.0 s"),
        ([(1, RUN)], "running 40 tests, 1.0 s"),
        ([(1, RUN), (9, results(0))], "running 40 tests, 9.0 s"),
        ([(1, RUN), (1, results(0)), (9, results(1))], "1/40 tests, 1 passed, 0 failed, 9.0 s"),
        ([(9, results(1)), (12, results(4, 2, 1))], "4/40 tests, 2 passed, 1 failed, 12.0 s, about 36 s left"),
        ([(9, results(1)), (12, results(40))], "40/40 tests, 40 passed, 0 failed, 12.0 s"),
        ([(9, results(40)), (9, REPEAT), (9, results(0, total=2))], "alone, as the machine was busy: 2 tests, 9.0 s"),
    ],
)
def test_the_text_follows_the_events(events, text):
    assert Shown().after(*events) == text


def test_tests_have_a_bar_on_a_terminal():
    shown = Shown(with_bar=True)
    assert shown.after((0, RUN)) == "running 40 tests, 0.0 s"
    assert shown.after((1, results(10))) == "━━━━──────────── 10/40 tests, 10 passed, 0 failed, 1.0 s"


@pytest.mark.parametrize(
    ("done", "total", "shown"),
    [(0, 4, "────"), (1, 4, "━───"), (3, 4, "━━━─"), (4, 4, "━━━━"), (5, 4, "━━━━"), (0, 0, "────")],
)
def test_the_bar_is_filled_by_what_is_done(done, total, shown):
    assert bar(done, total, width=4) == shown


def test_names_are_no_commands_of_the_terminal():
    event = ProgressEvent(ProgressKind.COLLECT_TESTS, problem="\x1b]0;owned\x07\n", checkpoint="\u202e")
    assert Shown().after((0, event)) == "collecting the tests of \\x1b]0;owned\\x07\\n \\u202e, 0.0 s"
