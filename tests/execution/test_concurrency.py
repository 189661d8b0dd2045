"""Waiting for several things at once."""

from __future__ import annotations

import threading
from contextvars import ContextVar

import pytest

from slop_code.execution.cancellation import Stop, StoppedError, check, stoppable
from slop_code.execution.concurrency import beside, together


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


def test_what_is_begun_in_a_context_sees_it():
    word = ContextVar("word", default="outside")
    token = word.set("inside")
    value = beside(word.get)
    assert together(word.get, word.get) == ["inside", "inside"]
    word.reset(token)
    assert value() == "inside"
    assert together(word.get) == ["outside"]


def test_a_stop_reaches_what_runs_beside():
    stop = Stop()
    stop.set()
    with stoppable(stop), pytest.raises(StoppedError):
        beside(check)()
    with stoppable(stop), pytest.raises(StoppedError):
        together(check, check)
    stop.close()
