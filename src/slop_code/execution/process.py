"""The only door to processes: argv in, exit status and bounded output out."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from slop_code._io import tail
from slop_code.errors import InfrastructureError
from slop_code.execution.cancellation import check_cancelled, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

TAIL = 8192
CHUNK = 1 << 16
ANSWER = 16 << 20
GRACE_S = 3.0
STEP_S = 0.05
START_S = 60.0

SPIN = """
import os, sys
os.write(1, b"x")
while os.getppid() == int(sys.argv[1]):
    for _ in range(1 << 18):
        pass
"""


@dataclass(frozen=True, slots=True)
class ProcessResult:
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
    interactive: bool = False,
) -> ProcessResult:
    """Run to the end or to the timeout, output to `log`; nothing of its group is left behind.

    It reads nothing, or, where it is interactive, our own standard input.

    A stop (see `stopping`) ends it like a timeout, and nothing new is begun after one.
    """
    check_cancelled()
    with log.open("wb") as sink:
        try:
            process = subprocess.Popen(
                argv,
                stdin=None if interactive else subprocess.DEVNULL,
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
    return ProcessResult(exit_code, tail(log, TAIL))


@dataclass(frozen=True, slots=True)
class CapturedOutput:
    exit_code: int
    output: str
    errors: str


def capture(argv: Sequence[str], timeout: float) -> CapturedOutput:
    """A program of the user's own, in the user's environment: what it answers, within bounds, and complains of.

    Neither a stop nor an interrupt on the terminal ends it: this is how things are cleaned up, too.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                timeout=timeout,
                check=False,
                start_new_session=True,
            )
        except OSError as error:
            raise InfrastructureError(f"cannot start {argv[0]}: {error.strerror}") from error
        except subprocess.TimeoutExpired:
            raise InfrastructureError(f"`{shlex.join(argv[:3])}` gave no answer within {timeout:g} s") from None
        said = [_beginning(stream, ANSWER).decode("utf-8", "replace") for stream in (output, errors)]
    return CapturedOutput(done.returncode, *said)


def _beginning(stream: IO[bytes], limit: int) -> bytes:
    stream.seek(0)
    return stream.read(limit)


class PipedProcess:
    """A process that is talked to: `send` what it reads, `read` what it answers, until a moment in time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    def send(self, parts: Iterable[bytes]) -> None:
        """An end of the process, or of the talk, before the end of the parts shows in what it answers."""
        try:
            for part in parts:
                if not self._write(part):
                    return
        except BaseException:  # the parts broke off: so that nobody waits for the rest
            self.hang_up()
            raise

    def _write(self, part: bytes) -> bool:
        try:
            while part:
                part = part[os.write(self._stdin.fileno(), part) :]
        except (OSError, ValueError):  # nobody reads any more, or it was hung up meanwhile
            return False
        return True

    def hang_up(self) -> None:
        self._stdin.close()

    def answers(self, until: float) -> bool:
        """Whether there is something to read, or an end, before that moment."""
        return wait_for(self._stdout.fileno(), until - time.monotonic())

    def read(self, size: int, until: float) -> bytes:
        """So many bytes, fewer when it has ended; TimeoutError when the moment has come."""
        parts = []
        while size > 0:
            if not self.answers(until):
                raise TimeoutError
            part = os.read(self._stdout.fileno(), min(size, CHUNK))
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


@contextlib.contextmanager
def open_piped(argv: Sequence[str], log: Path) -> Iterator[PipedProcess]:
    """A program of the user's own, in the user's environment; its errors go to `log`, and it ends with the block."""
    check_cancelled()
    with log.open("wb") as sink:
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=sink, bufsize=0, start_new_session=True)
        except OSError as error:
            raise InfrastructureError(f"cannot start {argv[0]}: {error.strerror}") from error
        child = PipedProcess(process)
        try:
            yield child
        finally:
            child.hang_up()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
            _end(process)
            child._stdout.close()


def succeeds(argv: Sequence[str]) -> bool:
    """A quick program whose exit status says it all; as with `capture`, it comes to its end."""
    quiet = subprocess.DEVNULL
    done = subprocess.run(argv, stdin=quiet, stdout=quiet, stderr=quiet, check=False, start_new_session=True)
    return done.returncode == 0


@contextlib.contextmanager
def cpu_load(count: int) -> Iterator[None]:
    """Beside so many processes that only use up time; they end with the block, and, were we killed, by themselves."""
    argv = [sys.executable, "-I", "-S", "-c", SPIN, str(os.getpid())]
    quiet = subprocess.DEVNULL
    with contextlib.ExitStack() as stack:
        started = []
        for _ in range(count):
            check_cancelled()
            try:
                process = subprocess.Popen(
                    argv, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet, start_new_session=True
                )
            except OSError as error:
                raise InfrastructureError(f"cannot start {argv[0]}: {error.strerror}") from error
            assert process.stdout is not None
            stack.enter_context(process.stdout)
            stack.callback(_end, process)
            started.append(process.stdout)
        for stdout in started:
            if not wait_for(stdout.fileno(), START_S) or not os.read(stdout.fileno(), 1):
                raise InfrastructureError("the processes that keep the machine busy do not start")
        yield


def _wait(process: subprocess.Popen[bytes], timeout: float) -> int | None:
    """Popen.wait with a timeout looks every 50 ms; a descriptor of the process tells at once."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        until = time.monotonic() + timeout
        while process.poll() is None and (left := until - time.monotonic()) > 0:
            wait_for(None, min(left, STEP_S))
        return process.poll()
    try:
        wait_for(descriptor, timeout)
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
