"""Processes of the submission: each in a group of its own, which ends with the test that waits for it."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import pytest

from .wording import cut, diff, ran, side_by_side, told, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Process = subprocess.Popen[bytes]

SECONDS = 10.0
MOST_BYTES = 64 * 1024 * 1024
PIPE_BYTES = 1024 * 1024
BLOCK = 64 * 1024
TICK = 0.05
LAST_TICK = 0.001
"""Where all its streams are closed, a process is about to end."""


@dataclass(frozen=True)
class Finished:
    """A call of the submission that has ended."""

    argv: list[str]
    returncode: int
    stdout: str
    stderr: str

    def __repr__(self) -> str:
        outputs = f"stdout {cut(self.stdout, 200)!r}, stderr {cut(self.stderr, 200)!r}"
        return f"<{visible(shlex.join(self.argv), 200)}: exit status {self.returncode}, {outputs}>"

    def expect(self, stdout: str | None = None, stderr: str | None = None, code: int | None = 0) -> Finished:
        """Fails unless all that is given is exactly so; None stands for anything."""
        __tracebackhide__ = True
        texts = {"stdout": (stdout, self.stdout), "stderr": (stderr, self.stderr)}
        given = {name: (want, found) for name, (want, found) in texts.items() if want is not None}
        if any(want != found for want, found in given.values()) or code not in (None, self.returncode):
            pytest.fail(self._difference(given, code))
        return self

    def _difference(self, given: Mapping[str, tuple[str, str]], code: int | None) -> str:
        wanted = [f"exit status {self.returncode if code is None else code}"]
        came, diffs = [f"exit status {self.returncode}"], []
        for name, pair in given.items():
            left, right = side_by_side(*pair)
            wanted += [f"{name}:", *left]
            came += [f"{name}:", *right]
            diffs += [text for text in [diff(name, *pair)] if text and pair[0] != pair[1]]
        rest = {"stdout": self.stdout, "stderr": self.stderr}
        others = [f"{name}:\n{visible(text)}" for name, text in rest.items() if name not in given and text]
        return "\n\n".join([ran(self.argv), told("expected", *wanted), told("found", *came), *diffs, *others])


def run_command(
    argv: Sequence[str],
    *,
    stdin: str | bytes = "",
    timeout: float = SECONDS,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> Finished:
    """The call ends when its process does; what that left running keeps running, unless time is up."""
    __tracebackhide__ = True
    heard = (bytearray(), bytearray())
    process = start(argv, cwd, env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    reason: str | None = "it was interrupted"
    try:
        data = stdin if isinstance(stdin, bytes) else stdin.encode("utf-8", "surrogateescape")
        reason = _exchange(process, data, heard, timeout)
    finally:
        if reason:
            kill_group(process)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                _known(stream).close()
    stdout, stderr = (some.decode("utf-8", "replace") for some in heard)
    if reason:
        outputs = [f"{name} so far:\n{visible(text)}" for name, text in (("stdout", stdout), ("stderr", stderr))]
        facts = [ran(argv), f"expected: it ends within {timeout:g} s", f"found: {reason}", *outputs]
        pytest.fail("\n\n".join(facts))
    return Finished(list(argv), process.returncode, stdout, stderr)


def start(argv: Sequence[str], cwd: Any, env: Mapping[str, str] | None, **streams: Any) -> Process:
    __tracebackhide__ = True
    variables = {**os.environ, **{name: str(value) for name, value in (env or {}).items()}}
    try:
        return subprocess.Popen(argv, cwd=cwd, env=variables, start_new_session=True, **streams)
    except OSError as error:
        pytest.fail(f"{ran(argv)}\n\nexpected: it starts\n\nfound: {error}")


def start_logged(argv: Sequence[str], cwd: Any, env: Mapping[str, str] | None, log: IO[bytes]) -> Process:
    __tracebackhide__ = True
    return start(argv, cwd, env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def has_ended(process: Process) -> bool:
    """Without taking its status: as long as that is there, its id and that of its group are nobody else's."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill_group(process: Process) -> None:
    """For a process whose status was not taken yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _exchange(process: Process, data: bytes, heard: tuple[bytearray, bytearray], timeout: float) -> str | None:
    """Input in, output out, until it has ended; or the reason why it was given up."""
    end, rest = time.monotonic() + timeout, memoryview(data)
    with selectors.DefaultSelector() as selector:
        for stream, kept in ((process.stdin, None), (process.stdout, heard[0]), (process.stderr, heard[1])):
            os.set_blocking(_known(stream).fileno(), False)
            event = selectors.EVENT_WRITE if kept is None else selectors.EVENT_READ
            selector.register(_known(stream), event, kept)
        while not has_ended(process):
            if (left := end - time.monotonic()) <= 0:
                return f"it still runs after {timeout:g} s"
            for key, _ in selector.select(min(left, TICK if selector.get_map() else LAST_TICK)):
                if key.data is None:
                    rest = _write(key.fd, rest)
                if not rest if key.data is None else _read(key.fd, key.data, BLOCK) == 0:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
            if sum(map(len, heard)) > MOST_BYTES:
                return f"it printed more than {MOST_BYTES} bytes"
        for key in selector.get_map().values():
            if key.data is not None:  # no more than the pipe holds: another process may have it open and write on
                _read(key.fd, key.data, PIPE_BYTES)
    return None


def _write(descriptor: int, rest: memoryview) -> memoryview:
    try:
        return rest[os.write(descriptor, rest[:BLOCK]) :]
    except BlockingIOError:
        return rest
    except OSError:  # nobody reads it
        return rest[:0]


def _read(descriptor: int, kept: bytearray, most: int) -> int | None:
    """How much came: 0 at the end, None where nothing has come yet."""
    count = 0
    while count < most:
        try:
            block = os.read(descriptor, BLOCK)
        except BlockingIOError:
            return count or None
        if not block:
            break
        kept += block
        count += len(block)
    return count


def _known(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream
