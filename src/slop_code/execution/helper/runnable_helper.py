"""Trial of the native helper: it is there, and this machine runs it."""

from __future__ import annotations

import functools
import os
import platform
from typing import TYPE_CHECKING

from slop_code.execution.helper import HelperError, build_advice, helper_path
from slop_code.execution.process import StartError, capture

if TYPE_CHECKING:
    from pathlib import Path

TRIAL_S = 60.0


def runnable_helper() -> Path:
    """The helper for this machine; a HelperError where it is missing or cannot be executed."""
    path = helper_path()
    _check(path)
    return path


@functools.cache
def _check(path: Path) -> None:
    """Errors are not kept: each call tries again after one."""
    try:
        done = capture([str(path), "id"], TRIAL_S)
    except StartError as error:
        raise HelperError(f"{path}: the native helper cannot be executed: {_fact(path, error)}") from error
    if done.exit_code != 0:
        raise HelperError(f"{path}: the native helper ended with {done.exit_code}; {build_advice(platform.machine())}")


def _fact(path: Path, error: StartError) -> str:
    if os.statvfs(path).f_flag & os.ST_NOEXEC:
        return "its file system is mounted with noexec; install slop-code on another one, or remount it with exec"
    if not os.access(path, os.X_OK):
        return f"this user may not execute it; run `chmod a+x {path}`"
    return f"{error.strerror}; {build_advice(platform.machine())}"
