"""Submissions that run as servers on loopback."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import tempfile
import time
from dataclasses import dataclass, field
from json import dumps
from typing import TYPE_CHECKING, Any

from .failure_messages import MAX_TEXT, command_line, escape_unprintable
from .http_client import HOST, NOT_GIVEN, Response, request_line, send_request
from .submission_calls import DEFAULT_TIMEOUT_S, fail_call, has_ended, kill_group, start_logged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .submission_calls import Process

STOP_SECONDS = 5.0
POLL_SECONDS = 0.01
NOT_READY = "it runs, but does not answer"


@contextlib.contextmanager
def servers(argv: Sequence[str]) -> Iterator[Callable[..., Server]]:
    """Yields a function that starts a server. All servers are stopped at the end, the last one first."""
    with contextlib.ExitStack() as stack:

        def start(
            *args: object,
            port: int | None = None,
            ready: str | None = None,
            timeout: float = DEFAULT_TIMEOUT_S,
            cwd: str | os.PathLike[str] | None = None,
            env: Mapping[str, object] | None = None,
        ) -> Server:
            __tracebackhide__ = True
            number = free_port() if port is None else port
            words = [*argv, *(str(word).replace("{port}", str(number)) for word in args)]
            variables = {name: str(value).replace("{port}", str(number)) for name, value in (env or {}).items()}
            log = stack.enter_context(tempfile.TemporaryFile())
            server = Server(words, number, ready, timeout, cwd, variables, log)
            stack.callback(server.stop)
            server.start()
            return server

        yield start


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@dataclass(eq=False)
class Server:
    argv: list[str]
    port: int
    ready: str | None
    timeout: float
    cwd: str | os.PathLike[str] | None
    env: Mapping[str, str]
    log: Any = field(repr=False)
    _process: Process | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def output(self) -> str:
        """All output since the first start; the middle of long output is left out."""
        descriptor = self.log.fileno()
        size = os.fstat(descriptor).st_size
        if size <= 2 * MAX_TEXT:
            return os.pread(descriptor, size, 0).decode("utf-8", "replace")
        ends = os.pread(descriptor, MAX_TEXT, 0), os.pread(descriptor, MAX_TEXT, size - MAX_TEXT)
        return f"\n[... {size - 2 * MAX_TEXT} bytes left out ...]\n".join(
            part.decode("utf-8", "replace") for part in ends
        )

    def start(self) -> None:
        """Does nothing while the server runs; otherwise the test fails unless it is ready in time."""
        __tracebackhide__ = True
        if self._process is not None and not has_ended(self._process):
            return
        self.stop()
        end = time.monotonic() + STOP_SECONDS
        while self._accepts():
            if time.monotonic() > end:
                self._fail(f"port {self.port} is free", "another program answers there", STOP_SECONDS)
            time.sleep(POLL_SECONDS)
        self._process = start_logged(self.argv, self.cwd, self.env, self.log)
        reason = self._wait()
        if reason is not None:
            status = self.stop()
            what = f"GET {self.ready} is answered" if self.ready else "connections are taken"
            expected = f"{what} on port {self.port} within {self.timeout:g} s"
            self._fail(expected, reason.format(status=status), self.timeout if reason == NOT_READY else None)

    def _wait(self) -> str | None:
        """Waits until the server is ready; returns the reason if it does not become ready."""
        assert self._process is not None
        end = time.monotonic() + self.timeout
        while not has_ended(self._process):
            if time.monotonic() > end:
                return NOT_READY
            if self._accepts() and (self.ready is None or self._answers(self.ready, end)):
                return None
            time.sleep(POLL_SECONDS)
        return "it ended with status {status}"

    def _accepts(self) -> bool:
        """A probe of a free port may connect to itself, which does not count."""
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((HOST, self.port)) == 0 and probe.getsockname() != probe.getpeername()

    def _answers(self, path: str, end: float) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            return send_request(self.port, "GET", path, None, {}, end).status < 500
        return False

    def stop(self) -> int | None:
        """Terminates the server, then kills what is left of its process group; returns the exit status."""
        process, self._process = self._process, None
        if process is None:
            return None
        end = time.monotonic() + STOP_SECONDS
        if not has_ended(process):
            process.terminate()
        try:
            while not has_ended(process) and time.monotonic() < end:
                time.sleep(POLL_SECONDS)
        finally:
            kill_group(process)
            process.wait()
        return process.returncode

    def restart(self) -> None:
        """Starts the server again on the same port, with the same arguments."""
        __tracebackhide__ = True
        self.stop()
        self.start()

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = NOT_GIVEN,
        data: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
    ) -> Response:
        """`json` or `data` is the body. The test fails unless the whole response arrives in time."""
        __tracebackhide__ = True
        kind = {} if json is NOT_GIVEN else {"Content-Type": "application/json"}
        body = data if json is NOT_GIVEN else dumps(json)
        content = body.encode() if isinstance(body, str) else body
        try:
            return send_request(
                self.port, method, path, content, {**kind, **(headers or {})}, time.monotonic() + timeout
            )
        except http.client.InvalidURL:
            raise
        except (OSError, http.client.HTTPException) as error:
            reason = f"{type(error).__name__}: {error}"
            limit = timeout if isinstance(error, TimeoutError) else None
        facts = [
            request_line(method, path, content),
            f"expected: an answer within {timeout:g} s",
            f"found: {escape_unprintable(reason)}",
            self._output_section(),
        ]
        return fail_call("\n\n".join(facts), self.argv, limit)

    def _fail(self, expected: str, actual: str, limit: float | None) -> None:
        __tracebackhide__ = True
        facts = [command_line(self.argv), f"expected: {expected}", f"found: {actual}", self._output_section()]
        fail_call("\n\n".join(facts), self.argv, limit)

    def _output_section(self) -> str:
        return f"output:\n{escape_unprintable(self.output, 4 * MAX_TEXT)}"
