"""A timeout strikes in the middle of anything; here it strikes a test, and never pytest itself.

Outside of a test's phases, while a report is made, nobody would catch what the alarm raises. And some instructions
belong to no line: where it strikes at one of them, the traceback has no line number, and cannot be shown. In both
cases pytest broke off: a submission whose output takes long to compare could get rid of a verdict.
"""

from __future__ import annotations

import functools
import signal
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import pytest

from .wording import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

PUT_OFF_S = 0.5
TOLD = 128 * 1024
"""Characters of what an exception says: more takes long to show, and nobody keeps it."""

_phases: list[bool] = []
"""Not empty while a test is set up, called or torn down."""


@pytest.hookimpl(hookwrapper=True, optionalhook=True)
def pytest_timeout_set_timer() -> Generator[None, None, None]:
    """By pytest-timeout, which has set its alarm when this goes on."""
    yield
    strike = signal.getsignal(signal.SIGALRM)
    if callable(strike):
        signal.signal(signal.SIGALRM, functools.partial(_alarm, strike))


def _alarm(strike: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None) -> None:
    if _phases:
        strike(number, frame)
    else:
        signal.setitimer(signal.ITIMER_REAL, PUT_OFF_S)


def _phase() -> Generator[None, None, None]:
    _phases.append(True)
    try:
        yield
    finally:
        _phases.clear()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    yield from _phase()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    yield from _phase()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None, None, None]:
    yield from _phase()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[Any]) -> Generator[None, None, None]:
    if call.excinfo is not None:
        shorten(call.excinfo.value)
        if give_lines(call.excinfo.value):
            call.excinfo = pytest.ExceptionInfo.from_exception(call.excinfo.value)
    yield


def shorten(raised: BaseException) -> None:
    """What a comparison of long texts has to say may be as long as they are."""
    for one in _chain(raised):
        if any(isinstance(word, str) and len(word) > TOLD for word in one.args):
            one.args = tuple(cut(word, TOLD) if isinstance(word, str) else word for word in one.args)
        if isinstance(message := getattr(one, "msg", None), str) and len(message) > TOLD:
            one.msg = cut(message, TOLD)  # type: ignore[attr-defined]


def give_lines(raised: BaseException) -> bool:
    """Where there is none, the first line of the function; whether there was such a place."""
    broken = [one for one in _chain(raised) if any(entry.tb_lineno is None for entry in _entries(one))]
    for one in broken:
        made: TracebackType | None = None
        for entry in reversed(list(_entries(one))):
            line = entry.tb_lineno or entry.tb_frame.f_code.co_firstlineno
            made = TracebackType(made, entry.tb_frame, entry.tb_lasti, line)
        one.__traceback__ = made
    return bool(broken)


def _chain(raised: BaseException) -> list[BaseException]:
    found: dict[int, BaseException] = {}
    waiting: list[BaseException | None] = [raised]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in found:
            found[id(one)] = one
            waiting += [one.__cause__, one.__context__]
    return list(found.values())


def _entries(raised: BaseException) -> Iterator[TracebackType]:
    entry = raised.__traceback__
    while entry is not None:
        yield entry
        entry = entry.tb_next
