"""Waiting for several things at once."""

from __future__ import annotations

import threading
from contextvars import ContextVar

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution.cancellation import (
    CancelToken,
    EvaluationCancelledError,
    cancel_scope,
    check_cancelled,
    deadline,
    wait_for,
)
from slop_code.execution.concurrency import run_cancellable, run_concurrently, start_thread


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


def test_concurrent_actions_give_their_values_in_order():
    both = threading.Barrier(2)
    assert run_cancellable([lambda: (both.wait(20), 1)[1], lambda: (both.wait(20), 2)[1]]) == [1, 2]


@pytest.fixture
def waits():
    """Waits until it is stopped, which is noted in `ended`."""

    def wait():
        try:
            wait_for(None, 20)
        except EvaluationCancelledError:
            wait.ended.append("stopped")
            raise

    wait.ended = []
    return wait


@pytest.mark.parametrize("position", [0, 1])
def test_an_error_cancels_the_others(waits, position):
    def breaks():
        raise ZeroDivisionError

    actions = [waits]
    actions.insert(position, breaks)
    with pytest.raises(ZeroDivisionError):
        run_cancellable(actions)
    assert waits.ended == ["stopped"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, EvaluationCancelledError])
def test_an_interrupt_of_the_wait_cancels_all(waits, interrupt, monkeypatch):
    def broken_off(_descriptor, _seconds):
        raise interrupt

    monkeypatch.setattr("slop_code.execution.concurrency.wait_for", broken_off)
    with pytest.raises(interrupt):
        run_cancellable([waits, waits])
    assert waits.ended == ["stopped"] * 2


def test_a_cancellation_from_outside_reaches_all(waits):
    token = CancelToken()
    both = threading.Barrier(2, action=token.cancel)

    def action():
        both.wait(20)
        waits()

    with cancel_scope(token), pytest.raises(EvaluationCancelledError):
        run_cancellable([action, action])
    assert waits.ended == ["stopped"] * 2
    token.close()


@pytest.fixture
def no_further_thread():
    """Memory for the stack of another thread is not to be had."""
    before = threading.stack_size(1 << 46)
    yield
    threading.stack_size(before)


@pytest.mark.usefixtures("no_further_thread")
def test_a_machine_without_room_for_a_thread_is_an_infrastructure_failure():
    with pytest.raises(InfrastructureError, match="can't start new thread; raise the limit"):
        start_thread(int)
    with pytest.raises(InfrastructureError, match="can't start new thread; raise the limit"), deadline(60, "late"):
        pass
