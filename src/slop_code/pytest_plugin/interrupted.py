"""Exceptions that a timeout raised in the middle of anything, so that pytest can show them.

Some instructions belong to no line. Where the signal arrives at one of them, the traceback has no line number, and
pytest itself breaks off: a submission whose output takes long to compare could get rid of a verdict.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[Any]) -> Generator[None, None, None]:
    if call.excinfo is not None and give_lines(call.excinfo.value):
        call.excinfo = pytest.ExceptionInfo.from_exception(call.excinfo.value)
    yield


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
