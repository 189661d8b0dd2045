"""The only door to processes: argv in, exit status and bounded output out."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code._io import tail
from slop_code.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TAIL = 8192
GRACE_S = 3.0
LONGEST_MS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Completed:
    exit_code: int | None
    """Negative: ended by that signal. None: ended by us when its time was over."""

    output: str
    """The end of what it printed."""


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    log: Path,
    timeout: float,
    cwd: Path | None = None,
) -> Completed:
    """Run to the end or to the timeout, output to `log`; nothing of its group is left behind."""
    with log.open("wb") as sink:
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:
            raise InfrastructureError(f"cannot start {argv[0]}: {error.strerror}") from error
        try:
            exit_code = _wait(process, timeout)
        finally:
            _end(process)
    return Completed(exit_code, tail(log, TAIL))


def succeeds(argv: Sequence[str]) -> bool:
    """A quick program whose exit status says it all."""
    quiet = subprocess.DEVNULL
    return subprocess.run(argv, stdin=quiet, stdout=quiet, stderr=quiet, check=False).returncode == 0


def _wait(process: subprocess.Popen[bytes], timeout: float) -> int | None:
    """Popen.wait with a timeout looks every 50 ms; a descriptor of the process tells at once."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout)
        return process.poll()
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(min(timeout * 1000, LONGEST_MS))
    finally:
        os.close(descriptor)
    return process.poll()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate, then kill; once it has ended, whoever stayed in its group goes too."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
