"""Worker threads: as many calls at a time as there are threads, each of which can be cancelled on its own."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import threading
from concurrent.futures import CancelledError
from contextvars import ContextVar

import pytest

from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope, wait_for
from slop_code.execution.worker_threads import WorkerThreads

TIMEOUT_S = 60
WORD: ContextVar[str] = ContextVar("word")


@pytest.fixture
def threads():
    made = WorkerThreads(2, "test")
    yield made
    made.drop_all()
    made.close()


class Call:
    """Waits until it is cancelled, or may end."""

    def __init__(self) -> None:
        self.began, self.may_end, self.ended = threading.Event(), CancelToken(), False

    def __call__(self) -> str:
        self.began.set()
        try:
            wait_for(self.may_end.fileno(), TIMEOUT_S)
            return "done"
        finally:
            self.ended = True


@pytest.fixture
def calls(threads):
    made = [Call() for _ in range(3)]
    yield made
    threads.drop_all()
    threads.close()
    for call in made:
        call.may_end.close()


def test_no_more_calls_than_threads_run_at_a_time(threads, calls):
    futures = [threads.submit(call) for call in calls]
    assert calls[0].began.wait(TIMEOUT_S)
    assert calls[1].began.wait(TIMEOUT_S)
    assert not calls[2].began.is_set()
    for call in calls:
        call.may_end.cancel()
    assert [future.result(TIMEOUT_S) for future in futures] == ["done"] * 3


def test_one_call_is_cancelled_and_the_others_go_on(threads, calls):
    futures = [threads.submit(call) for call in calls]
    assert calls[0].began.wait(TIMEOUT_S)
    threads.cancel(futures[0])
    with pytest.raises(EvaluationCancelledError):
        futures[0].result(TIMEOUT_S)
    assert calls[2].began.wait(TIMEOUT_S)
    assert not calls[1].ended
    threads.cancel(futures[0])


def test_a_call_in_the_queue_that_is_dropped_is_never_made(threads, calls):
    futures = [threads.submit(call) for call in calls]
    threads.drop(futures[2])
    with pytest.raises(CancelledError):
        futures[2].result(TIMEOUT_S)
    for call in calls[:2]:
        call.may_end.cancel()
    threads.close()
    assert [call.began.is_set() for call in calls] == [True, True, False]


def test_whoever_waits_in_a_cancelled_scope_waits_for_the_end_of_the_call(threads, calls):
    with contextlib.closing(CancelToken()) as token, cancel_scope(token):
        future = threads.submit(calls[0])
        assert calls[0].began.wait(TIMEOUT_S)
        token.cancel()
        with pytest.raises(EvaluationCancelledError):
            threads.wait_for(future)
        assert calls[0].ended


def test_whoever_waits_for_a_call_in_the_queue_need_not_wait_for_the_others(threads, calls):
    with contextlib.closing(CancelToken()) as token, cancel_scope(token):
        futures = [threads.submit(call) for call in calls]
        token.cancel()
        with pytest.raises(EvaluationCancelledError):
            threads.wait_for(futures[2])
        assert [call.ended for call in calls] == [False] * 3


@pytest.mark.parametrize("times", [1, 3])
def test_a_task_that_is_cancelled_waits_for_the_end_of_the_call(threads, calls, times):
    async def cancelled() -> bool:
        future = threads.submit(calls[0])
        task = asyncio.create_task(threads.wait_for_async(future))
        await asyncio.to_thread(calls[0].began.wait, TIMEOUT_S)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert asyncio.run(cancelled())
    assert calls[0].ended


def test_the_error_of_a_call_is_that_of_its_future(threads):
    async def failing() -> None:
        future = threads.submit(int, "x")
        await threads.wait_for_async(future)
        future.result()

    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(failing())


def test_a_call_has_the_context_of_its_caller(threads):
    reset = WORD.set("mine")
    try:
        assert threads.submit(WORD.get).result(TIMEOUT_S) == "mine"
    finally:
        WORD.reset(reset)


def test_calls_leave_no_descriptors_and_no_tokens(threads):
    threads.wait_for(threads.submit(str))
    gc.collect()  # what earlier tests left would free descriptors meanwhile
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(100):
        threads.wait_for(threads.submit(str))
    threads.close()
    assert len(os.listdir("/proc/self/fd")) <= before
    assert threads._tokens == {}
