"""pytest plugin that ends the judge's process without Python's teardown; loaded as `slop_code_process_exit`.

Freeing every object and module takes longer than many tests, and happens when all reports are written. Everything
before it is done as Python does it: threads are waited for, functions of `atexit` run, output is flushed.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import NoReturn

import pytest

FLUSH_FAILED = 120
"""Python's exit status if its output cannot be written."""

_exit = sys.exit


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """No test sees the other function: pytest has run them all."""
    sys.exit = end_process


def end_process(status: object = None, /) -> NoReturn:
    """Only the exit of pytest's console script is known to be the last action of the process."""
    if not isinstance(status, int) or sys._getframe(1).f_globals.get("__name__") != "__main__":
        _exit(status)  # type: ignore[arg-type]
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        status = FLUSH_FAILED
    os._exit(status & 0xFF)
