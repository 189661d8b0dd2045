import pytest

from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.reporting.progress.counted_work import advance, left_text


def after(events, kind=ProgressKind.EVALUATE_MUTANTS, total=10):
    """The state after (time, count)."""
    work = None
    for now, count in events:
        work = advance(work, ProgressEvent(kind, count=count, total=total), now)
    return work


@pytest.mark.parametrize(
    ("events", "now", "left"),
    [
        ([(0, 0)], 9, None),
        ([(0, 0), (4, 2)], 4, 16.0),
        ([(0, 0), (4, 2)], 6, 14.0),  # it goes down while nothing ends
        ([(0, 0), (4, 2)], 60, 0.0),  # and not below nothing
        ([(0, 0), (4, 2), (5, 2)], 6, 14.0),  # the same count again says nothing about the pace
        ([(0, 0), (9, 10)], 9, 0.0),
        ([(0, 4), (6, 6)], 6, 12.0),
        ([(0, 0), (4, 2), (5, 0)], 6, None),  # begins anew
        ([(0, 0), (4, 2), (5, 0), (6, 5)], 6, 1.0),
    ],
)
def test_the_remaining_time_follows_from_the_pace(events, now, left):
    assert after(events).left(now) == left


@pytest.mark.parametrize(
    ("events", "left"),
    [
        ([(0, 0), (5, 1)], None),
        ([(0, 0), (5, 1), (6, 2)], 8.0),  # not the 5 s until pytest ran
        ([(0, 0), (5, 3), (6, 6)], pytest.approx(4 / 3)),
    ],
)
def test_tests_count_from_the_first_result_on(events, left):
    assert after(events, ProgressKind.TESTS_DONE).left(events[-1][0]) == left


def test_other_work_begins_anew():
    before = after([(0, 0), (4, 2)])
    assert advance(before, ProgressEvent(ProgressKind.EVALUATE_LIMITS, count=2, total=3), 5).left(5) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0.0, ""),
        (0.2, "about 1 s left"),
        (37.9, "about 38 s left"),
        (59.4, "about 59 s left"),
        (90.4, "about 1 min 30 s left"),
        (61.0, "about 1 min 1 s left"),
    ],
)
def test_the_remaining_time_is_printed_roughly(seconds, text):
    assert left_text(seconds) == text
