"""Signals that end an evaluation early. Their handlers raise nothing, so that everything is cleaned up."""

from __future__ import annotations

import contextlib
import signal
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from slop_code.runs.jobs.run_control import RunControl

MAX_CANCELLATIONS = 2


@contextlib.contextmanager
def cancelled_by_signals() -> Iterator[None]:
    """Ctrl-C, SIGTERM and a closed terminal (SIGHUP) cancel the evaluation in this block.

    After the second signal, Ctrl-C ends this process at once; the next evaluation cleans up then.
    """
    signals = 0
    with contextlib.closing(CancelToken()) as token, cancel_scope(token):

        def cancel(_number: int, _frame: object) -> None:
            nonlocal signals
            signals += 1
            token.cancel()
            if signals == MAX_CANCELLATIONS:
                signal.signal(signal.SIGINT, signal.default_int_handler)

        with _handlers(dict.fromkeys((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), cancel)):
            try:
                yield
            except EvaluationCancelledError:
                raise KeyboardInterrupt from None


@contextlib.contextmanager
def interrupts(control: RunControl, stopping: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C lets running jobs finish. The second, SIGTERM and a closed terminal (SIGHUP) stop them now.

    The handlers raise nothing, so that the scheduler always knows its running jobs. A thread calls `stopping`: a
    handler may run during a write, and what it writes itself is lost then.
    """
    announcements: SimpleQueue[bool] = SimpleQueue()  # a handler may put into it

    def announce() -> None:
        if announcements.get():
            stopping()

    def interrupt(_number: int, _frame: object) -> None:
        if control.finishing:
            control.stop()
            signal.signal(signal.SIGINT, signal.default_int_handler)
        else:
            control.finish()
            announcements.put(True)

    def stop(_number: int, _frame: object) -> None:
        control.stop()

    thread = threading.Thread(target=announce, name="announce-stop", daemon=True)
    thread.start()
    try:
        with _handlers({signal.SIGINT: interrupt, signal.SIGTERM: stop, signal.SIGHUP: stop}):
            yield
    finally:
        announcements.put(False)
        thread.join()


@contextlib.contextmanager
def _handlers(handlers: Mapping[signal.Signals, Callable[[int, object], None]]) -> Iterator[None]:
    """Install the handlers during the block; an ignored SIGHUP stays ignored, as under nohup."""
    ignored = {signal.SIGHUP} if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else set()
    before = {number: signal.signal(number, handlers[number]) for number in handlers.keys() - ignored}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
