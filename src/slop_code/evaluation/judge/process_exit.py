"""pytest plugin that ends the judge's process without Python's teardown; loaded as `slop_code_process_exit`.

Freeing every object and module takes longer than many tests, and happens when all reports are written. Everything
before it is done as Python does it: threads are waited for, functions of `atexit` run, output is flushed.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from _pytest import config as pytest_config

if TYPE_CHECKING:
    from types import FrameType

FLUSH_FAILED = 120
"""Python's exit status if its output cannot be written."""


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """No test sees the profile function: pytest has run them all."""
    if sys.getprofile() is None:
        sys.setprofile(end_after_main)


def end_after_main(frame: FrameType, event: str, value: Any) -> None:
    """Only what pytest's main function returns to the script is known to be the exit status of the process."""
    caller = frame.f_back
    if event != "return" or caller is None or caller.f_globals.get("__name__") != "__main__":
        return
    sys.setprofile(None)
    is_main = frame.f_code.co_filename == pytest_config.__file__ and caller.f_code.co_name == "<module>"
    if is_main and isinstance(value, int):  # None: it raised an error
        end_process(value)


def end_process(status: int) -> None:
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        status = FLUSH_FAILED
    os._exit(status & 0xFF)
