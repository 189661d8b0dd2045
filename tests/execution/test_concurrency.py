"""Waiting for several things at once."""

from __future__ import annotations

import threading
from contextvars import ContextVar

import pytest

from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope, check_cancelled
from slop_code.execution.concurrency import run_concurrently, start_thread


def test_values_come_back_in_order():
    meeting = threading.Barrier(3, timeout=30)
    assert run_concurrently(*[lambda number=number: (meeting.wait(), number)[1] for number in range(3)]) == [0, 1, 2]


def test_all_end_before_an_error_is_raised():
    failing, ended = threading.Event(), []

    def fails():
        failing.set()
        raise ValueError("first")

    def ends_later():
        failing.wait(30)
        ended.append("second")

    with pytest.raises(ValueError, match="first"):
        run_concurrently(fails, ends_later)
    assert ended == ["second"]


def test_a_thread_returns_its_value_or_raises_its_error():
    going = threading.Event()
    value = start_thread(lambda word: (going.wait(30), word)[1], "done")
    going.set()
    assert value() == "done"
    with pytest.raises(ZeroDivisionError):
        start_thread(lambda: 1 // 0)()


def test_threads_see_the_context_they_were_started_in():
    word = ContextVar("word", default="outside")
    token = word.set("inside")
    value = start_thread(word.get)
    assert run_concurrently(word.get, word.get) == ["inside", "inside"]
    word.reset(token)
    assert value() == "inside"
    assert run_concurrently(word.get) == ["outside"]


def test_cancellation_reaches_threads():
    token = CancelToken()
    token.cancel()
    with cancel_scope(token), pytest.raises(EvaluationCancelledError):
        start_thread(check_cancelled)()
    with cancel_scope(token), pytest.raises(EvaluationCancelledError):
        run_concurrently(check_cancelled, check_cancelled)
    token.close()
