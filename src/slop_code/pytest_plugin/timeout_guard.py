"""Guard for pytest-timeout, whose alarm may interrupt a test but never pytest itself.

When it has struck, it is set again for the fixtures that clean up: pytest-timeout sets it once for a test.
Two cases would end pytest, so that a submission whose output takes long to compare could avoid a verdict.
Outside of a test's phases, while a report is made, nothing catches the alarm's exception. And an alarm at an
instruction that belongs to no line makes a traceback without a line number, which pytest cannot show.
"""

from __future__ import annotations

import functools
import signal
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import pytest

from .failure_messages import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

RETRY_SECONDS = 0.5
MAX_MESSAGE = 128 * 1024
"""Characters of an exception's message; longer ones take long to show."""

_phases: list[bool] = []
"""Not empty while a test is set up, called or torn down."""

_struck: list[Callable[[], None]] = []
"""Sets the alarm that struck in this test again."""


@pytest.hookimpl(hookwrapper=True, optionalhook=True)
def pytest_timeout_set_timer(settings: Any) -> Generator[None, None, None]:
    """pytest-timeout has set its alarm when the wrapped hook returns."""
    yield
    _struck.clear()
    handler = signal.getsignal(signal.SIGALRM)
    if callable(handler):
        signal.signal(signal.SIGALRM, functools.partial(_alarm, handler, settings.timeout))


def _alarm(
    handler: Callable[[int, FrameType | None], Any], timeout: float, number: int, frame: FrameType | None
) -> None:
    if _phases:
        _struck[:] = [functools.partial(_set_again, signal.getsignal(signal.SIGALRM), timeout)]
        _struck[0]()
        handler(number, frame)
    else:
        signal.setitimer(signal.ITIMER_REAL, RETRY_SECONDS)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def _phase() -> Generator[None, None, None]:
    _phases.append(True)
    try:
        yield
    finally:
        _phases.clear()


pytest_runtest_setup = pytest_runtest_call = _phase


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None, None, None]:
    for set_again in _struck:  # pytest-timeout cancels the alarm when the error of a test is shown
        set_again()
    yield from _phase()


def _set_again(handler: Any, timeout: float) -> None:
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, timeout)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[Any]) -> Generator[None, None, None]:
    if call.excinfo is not None:
        shorten(call.excinfo.value)
        if add_missing_lines(call.excinfo.value):
            call.excinfo = pytest.ExceptionInfo.from_exception(call.excinfo.value)
    yield


def shorten(raised: BaseException) -> None:
    """A failed comparison has a message as long as the texts that it compares."""
    for error in _chain(raised):
        if any(isinstance(word, str) and len(word) > MAX_MESSAGE for word in error.args):
            error.args = tuple(cut(word, MAX_MESSAGE) if isinstance(word, str) else word for word in error.args)
        if isinstance(message := getattr(error, "msg", None), str) and len(message) > MAX_MESSAGE:
            error.msg = cut(message, MAX_MESSAGE)  # type: ignore[attr-defined]


def add_missing_lines(raised: BaseException) -> bool:
    """Replaces missing line numbers with the first line of the function; False if none was missing."""
    broken = [error for error in _chain(raised) if any(entry.tb_lineno is None for entry in _entries(error))]
    for error in broken:
        rebuilt: TracebackType | None = None
        for entry in reversed(list(_entries(error))):
            line = entry.tb_lineno or entry.tb_frame.f_code.co_firstlineno
            rebuilt = TracebackType(rebuilt, entry.tb_frame, entry.tb_lasti, line)
        error.__traceback__ = rebuilt
    return bool(broken)


def _chain(raised: BaseException) -> list[BaseException]:
    """The exception with all its causes and contexts, each once."""
    chain: dict[int, BaseException] = {}
    pending: list[BaseException | None] = [raised]
    while pending:
        error = pending.pop()
        if error is not None and id(error) not in chain:
            chain[id(error)] = error
            pending += [error.__cause__, error.__context__]
    return list(chain.values())


def _entries(raised: BaseException) -> Iterator[TracebackType]:
    entry = raised.__traceback__
    while entry is not None:
        yield entry
        entry = entry.tb_next
