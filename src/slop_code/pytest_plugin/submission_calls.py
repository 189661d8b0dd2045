"""Processes of the submission, each in its own process group."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NoReturn

import pytest

from .failure_messages import command_line, cut, diff, escape_unprintable, section, side_by_side

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Process = subprocess.Popen[bytes]

DEFAULT_TIMEOUT_S = 10.0
MAX_OUTPUT_BYTES = 64 * 1024 * 1024
PIPE_BYTES = 1024 * 1024
BLOCK = 64 * 1024
POLL_S = 0.05
POLL_AT_END_S = 0.001
"""Used after all streams are closed, because the process is then about to end."""
OUTPUT_TOO_LARGE = f"it printed more than {MAX_OUTPUT_BYTES} bytes"


@dataclass(frozen=True)
class CompletedCall:
    """A call of the submission, after its end."""

    argv: list[str]
    returncode: int
    stdout: str
    stderr: str

    def __repr__(self) -> str:
        outputs = f"stdout {cut(self.stdout, 200)!r}, stderr {cut(self.stderr, 200)!r}"
        return f"<{escape_unprintable(shlex.join(self.argv), 200)}: exit status {self.returncode}, {outputs}>"

    def expect(self, stdout: str | None = None, stderr: str | None = None, code: int | None = 0) -> CompletedCall:
        """The test fails unless each given value is equal; None accepts anything."""
        __tracebackhide__ = True
        texts = {"stdout": (stdout, self.stdout), "stderr": (stderr, self.stderr)}
        given = {name: (expected, actual) for name, (expected, actual) in texts.items() if expected is not None}
        if any(expected != actual for expected, actual in given.values()) or code not in (None, self.returncode):
            pytest.fail(self._difference(given, code))
        return self

    def _difference(self, given: Mapping[str, tuple[str, str]], code: int | None) -> str:
        expected = [f"exit status {self.returncode if code is None else code}"]
        actual, diffs = [f"exit status {self.returncode}"], []
        for name, pair in given.items():
            left, right = side_by_side(*pair)
            expected += [f"{name}:", *left]
            actual += [f"{name}:", *right]
            diffs += [text for text in [diff(name, *pair)] if text and pair[0] != pair[1]]
        rest = {"stdout": self.stdout, "stderr": self.stderr}
        others = [f"{name}:\n{escape_unprintable(text)}" for name, text in rest.items() if name not in given and text]
        return "\n\n".join(
            [command_line(self.argv), section("expected", *expected), section("found", *actual), *diffs, *others]
        )


def run_command(
    argv: Sequence[str],
    *,
    stdin: str | bytes = "",
    timeout: float = DEFAULT_TIMEOUT_S,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> CompletedCall:
    """Returns when the process ends. Its child processes may run on, except after a timeout."""
    __tracebackhide__ = True
    output = (bytearray(), bytearray())
    process = start(argv, cwd, env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    reason: str | None = "it was interrupted"
    try:
        data = stdin if isinstance(stdin, bytes) else stdin.encode("utf-8", "surrogateescape")
        reason = _exchange(process, data, output, timeout)
    finally:
        if reason:
            kill_group(process)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                _opened(stream).close()
    stdout, stderr = (part.decode("utf-8", "replace") for part in output)
    if reason:
        outputs = [
            f"{name} so far:\n{escape_unprintable(text)}" for name, text in (("stdout", stdout), ("stderr", stderr))
        ]
        facts = [command_line(argv), f"expected: it ends within {timeout:g} s", f"found: {reason}", *outputs]
        fail_call("\n\n".join(facts), argv, None if reason == OUTPUT_TOO_LARGE else timeout)
    return CompletedCall(list(argv), process.returncode, stdout, stderr)


def fail_call(message: str, argv: Sequence[str], limit: float | None) -> NoReturn:
    """Fails the test. `limit`: the time limit that is the reason, if one is.

    The context of the failure has the limit, since the judge measures whether the machine was too busy for it.
    """
    __tracebackhide__ = True
    if limit is None:
        pytest.fail(message)
    try:
        raise subprocess.TimeoutExpired(list(argv), limit)
    except subprocess.TimeoutExpired:
        raise pytest.fail.Exception(message) from None  # which hides the context, but keeps it


def start(argv: Sequence[str], cwd: Any, env: Mapping[str, str] | None, **streams: Any) -> Process:
    __tracebackhide__ = True
    variables = {**os.environ, **{name: str(value) for name, value in (env or {}).items()}}
    try:
        return subprocess.Popen(argv, cwd=cwd, env=variables, start_new_session=True, **streams)
    except OSError as error:
        pytest.fail(f"{command_line(argv)}\n\nexpected: it starts\n\nfound: {error}")


def start_logged(argv: Sequence[str], cwd: Any, env: Mapping[str, str] | None, log: IO[bytes]) -> Process:
    __tracebackhide__ = True
    return start(argv, cwd, env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def has_ended(process: Process) -> bool:
    """Does not reap the process, so that the kernel cannot reuse its id or that of its group."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill_group(process: Process) -> None:
    """The process must not be reaped yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _exchange(process: Process, data: bytes, output: tuple[bytearray, bytearray], timeout: float) -> str | None:
    """Copies input and output until the process ends; returns the reason if it has to be killed before."""
    end, rest = time.monotonic() + timeout, memoryview(data)
    with selectors.DefaultSelector() as selector:
        for stream, kept in ((process.stdin, None), (process.stdout, output[0]), (process.stderr, output[1])):
            os.set_blocking(_opened(stream).fileno(), False)
            event = selectors.EVENT_WRITE if kept is None else selectors.EVENT_READ
            selector.register(_opened(stream), event, kept)
        while not has_ended(process):
            if (left := end - time.monotonic()) <= 0:
                return f"it still runs after {timeout:g} s"
            for key, _ in selector.select(min(left, POLL_S if selector.get_map() else POLL_AT_END_S)):
                if key.data is None:
                    rest = _write(key.fd, rest)
                    is_finished = not rest
                else:
                    is_finished = _read(key.fd, key.data, BLOCK) == 0
                if is_finished:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
            if sum(map(len, output)) > MAX_OUTPUT_BYTES:
                return OUTPUT_TOO_LARGE
        for key in selector.get_map().values():
            if key.data is not None:  # at most what the pipe holds: another process may still write to it
                _read(key.fd, key.data, PIPE_BYTES)
    return None


def _write(descriptor: int, rest: memoryview) -> memoryview:
    try:
        return rest[os.write(descriptor, rest[:BLOCK]) :]
    except BlockingIOError:
        return rest
    except OSError:  # the process closed its stdin
        return rest[:0]


def _read(descriptor: int, kept: bytearray, limit: int) -> int | None:
    """The number of bytes read: 0 at the end of the stream, None if no data is available yet."""
    count = 0
    while count < limit:
        try:
            block = os.read(descriptor, BLOCK)
        except BlockingIOError:
            return count or None
        if not block:
            break
        kept += block
        count += len(block)
    return count


def _opened(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream
