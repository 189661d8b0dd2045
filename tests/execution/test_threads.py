"""Waiting for several things at once."""

from __future__ import annotations

import threading

import pytest

from slop_code.execution.threads import beside, together


def test_values_come_back_in_order():
    meeting = threading.Barrier(3, timeout=30)
    assert together(*[lambda number=number: (meeting.wait(), number)[1] for number in range(3)]) == [0, 1, 2]


def test_all_end_before_an_error_is_raised():
    failing, ended = threading.Event(), []

    def fails():
        failing.set()
        raise ValueError("first")

    def ends_later():
        failing.wait(30)
        ended.append("second")

    with pytest.raises(ValueError, match="first"):
        together(fails, ends_later)
    assert ended == ["second"]


def test_one_thing_beside():
    going = threading.Event()
    value = beside(lambda word: (going.wait(30), word)[1], "done")
    going.set()
    assert value() == "done"
    with pytest.raises(ZeroDivisionError):
        beside(lambda: 1 // 0)()
