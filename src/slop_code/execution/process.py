"""Processes of the evaluator: argv in, exit code and bounded output out.

No other module starts processes, except `pytest_plugin/submission_calls.py`, which runs in the pytest of the tests.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from slop_code._io import tail
from slop_code.errors import InfrastructureError
from slop_code.execution.cancellation import check_cancelled, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

logger = logging.getLogger(__name__)

MAX_TAIL = 8192
CHUNK = 1 << 16
MAX_OUTPUT = 16 << 20
GRACE_S = 3.0
POLL_S = 0.05
START_S = 60.0

Process: TypeAlias = subprocess.Popen[bytes]

BUSY_LOOP = """
import os, sys
os.write(1, b"x")
while os.getppid() == int(sys.argv[1]):
    for _ in range(1 << 18):
        pass
"""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    exit_code: int | None
    """Negative if that signal killed it, or None if it was ended by us after its timeout."""

    output: str
    """The end of its stdout and stderr."""


class StartError(InfrastructureError):
    """The system does not start a program."""

    def __init__(self, program: str, strerror: str | None) -> None:
        super().__init__(f"cannot start {program}: {strerror}")
        self.program, self.strerror = program, strerror

    def __reduce__(self) -> tuple[type[StartError], tuple[str, str | None]]:
        return StartError, (self.program, self.strerror)


class StartOptions(TypedDict, total=False):
    """As those of Popen."""

    cwd: Path
    pass_fds: Sequence[int]


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    log: Path,
    timeout: float,
    interactive: bool = False,
    **options: Unpack[StartOptions],
) -> ProcessResult:
    """Run a process to its end or its timeout, with output to `log`; nothing of its process group stays.

    Its stdin is empty, or our own where it is interactive. Cancellation ends it like a timeout.
    """
    check_cancelled()
    logger.debug("run: %s", _shown(argv))
    with log.open("wb") as sink:
        stdin = None if interactive else subprocess.DEVNULL
        process = _start(argv, stdin=stdin, stdout=sink, stderr=sink, env=dict(env), **options)
        try:
            exit_code = _wait(process, timeout)
        finally:
            end_process(process)
    if exit_code is None:
        logger.info("timeout of %g s struck: %s", timeout, argv[0])
    logger.debug("exit code %s: %s", exit_code, argv[0])
    return ProcessResult(exit_code, tail(log, MAX_TAIL))


@dataclass(frozen=True, slots=True)
class CapturedOutput:
    exit_code: int
    output: str
    errors: str


class NoAnswerError(InfrastructureError):
    """A program did not end in time."""


def capture(argv: Sequence[str], timeout: float, env: Mapping[str, str] | None = None) -> CapturedOutput:
    """Run a program in the user's environment, or the given one, and capture its stdout and stderr, within bounds.

    Neither cancellation nor an interrupt on the terminal ends it, since cleaning up uses this too.
    """
    logger.debug("capture: %s", _shown(argv))
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": errors, "env": env}
        try:
            with _start_errors(argv):
                done = subprocess.run(argv, **streams, timeout=timeout, check=False, start_new_session=True)
        except subprocess.TimeoutExpired:
            raise NoAnswerError(f"`{shlex.join(argv[:3])}` gave no answer within {timeout:g} s") from None
        outputs = [_head(stream, MAX_OUTPUT).decode("utf-8", "replace") for stream in (output, errors)]
    logger.debug("exit code %s: %s", done.returncode, argv[0])
    return CapturedOutput(done.returncode, *outputs)


def _head(stream: IO[bytes], limit: int) -> bytes:
    stream.seek(0)
    return stream.read(limit)


class PipedProcess:
    """A process whose stdin and stdout are pipes of ours; deadlines are on the monotonic clock."""

    def __init__(self, process: Process) -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    def send(self, parts: Iterable[bytes]) -> None:
        """Write the parts to its stdin; where the process ends before the parts do, `read` shows it."""
        try:
            for part in parts:
                if not self._write(part):
                    return
        except BaseException:  # the parts ended early: the process must not wait for the rest
            self.hang_up()
            raise

    def _write(self, part: bytes) -> bool:
        try:
            while part:
                part = part[os.write(self._stdin.fileno(), part) :]
        except (OSError, ValueError):  # the process has ended, or `hang_up` was called meanwhile
            return False
        return True

    def hang_up(self) -> None:
        self._stdin.close()

    def answers(self, deadline: float) -> bool:
        """Whether its stdout becomes readable, or ends, before the deadline."""
        return wait_for(self._stdout.fileno(), deadline - time.monotonic())

    def read(self, size: int, deadline: float) -> bytes:
        """`size` bytes, fewer when the process has ended; TimeoutError after the deadline."""
        parts = []
        while size > 0:
            if not self.answers(deadline):
                raise TimeoutError
            part = os.read(self._stdout.fileno(), min(size, CHUNK))
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


@contextlib.contextmanager
def open_piped(argv: Sequence[str], log: Path) -> Iterator[PipedProcess]:
    """A process in the user's environment that ends with the block; its stderr goes to `log`."""
    check_cancelled()
    logger.debug("open: %s", _shown(argv))
    with log.open("wb") as sink:
        process = _start(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sink, bufsize=0)
        child = PipedProcess(process)
        try:
            yield child
        finally:
            child.hang_up()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
            end_process(process)
            logger.debug("exit code %s: %s", process.returncode, argv[0])
            child._stdout.close()


def start_connected(argv: Callable[[int], Sequence[str]], log: Path) -> tuple[Process, socket.socket]:
    """Start a process that shares a socket with us; `argv` gets the number of its descriptor there.

    Its stdin is empty, and its stdout and stderr go to `log`. The caller ends it with `end_process`.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, log.open("wb") as sink:
        try:
            words = argv(theirs.fileno())
            logger.debug("open: %s", _shown(words))
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": sink, "stderr": sink, "env": {}}
            return _start(words, **streams, pass_fds=(theirs.fileno(),)), ours
        except BaseException:
            ours.close()
            raise


def start_idle() -> Process:
    """A process that waits until `communicate` is called on it, or this process ends."""
    quiet = subprocess.DEVNULL
    return _start(["cat"], stdin=subprocess.PIPE, stdout=quiet, stderr=quiet)


def succeeds(argv: Sequence[str]) -> bool:
    """Run a quick program for its exit code; as with `capture`, cancellation does not end it."""
    quiet = subprocess.DEVNULL
    with _start_errors(argv):
        done = subprocess.run(argv, stdin=quiet, stdout=quiet, stderr=quiet, check=False, start_new_session=True)
    return done.returncode == 0


@contextlib.contextmanager
def cpu_load(count: int) -> Iterator[None]:
    """`count` processes use up CPU time during the block; they end by themselves if we are killed."""
    argv = [sys.executable, "-I", "-S", "-c", BUSY_LOOP, str(os.getpid())]
    quiet = subprocess.DEVNULL
    with contextlib.ExitStack() as stack:
        started = []
        for _ in range(count):
            check_cancelled()
            process = _start(argv, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet)
            assert process.stdout is not None
            stack.enter_context(process.stdout)
            stack.callback(end_process, process)
            started.append(process.stdout)
        for stdout in started:
            if not wait_for(stdout.fileno(), START_S) or not os.read(stdout.fileno(), 1):
                raise InfrastructureError(
                    f"{count} processes that keep the machine busy do not start within {START_S:g} s; "
                    "try again when it is less busy"
                )
        yield


def _start(argv: Sequence[str], **options: Any) -> Process:
    with _start_errors(argv):
        return subprocess.Popen(argv, start_new_session=True, **options)


@contextlib.contextmanager
def _start_errors(argv: Sequence[str]) -> Iterator[None]:
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        raise InfrastructureError(
            "this program ignores SIGCHLD, so the system keeps no exit status of a process; "
            "call signal.signal(signal.SIGCHLD, signal.SIG_DFL) before an evaluation"
        )
    try:
        yield
    except OSError as error:
        raise StartError(argv[0], error.strerror) from error


def _shown(argv: Sequence[str]) -> str:
    """Values of variables stay out of logs: the password of a proxy may be among them."""
    return shlex.join("***" if argv[max(0, number - 2)] == "--setenv" else word for number, word in enumerate(argv))


def _wait(process: Process, timeout: float) -> int | None:
    """A pidfd becomes readable at once, while Popen.wait with a timeout polls every 50 ms."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        deadline = time.monotonic() + timeout
        while process.poll() is None and (left := deadline - time.monotonic()) > 0:
            wait_for(None, min(left, POLL_S))
        return process.poll()
    try:
        wait_for(descriptor, timeout)
    finally:
        os.close(descriptor)
    return process.poll()


def end_process(process: Process) -> None:
    """Terminate, then kill; once it has ended, kill the rest of its process group."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
