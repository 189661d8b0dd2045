"""Starts the submission as a server on its fixed port, one process at a time."""

import json
import shlex
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ADDRESS = ("127.0.0.1", 8080)
SECONDS = 60


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--entrypoint", required=True, help="command that starts the submission")
    parser.addoption("--checkpoint", required=True, help="checkpoint the submission belongs to")


@pytest.fixture(scope="session")
def entrypoint_argv(request: pytest.FixtureRequest) -> list[str]:
    return shlex.split(request.config.getoption("--entrypoint"))


@pytest.fixture(scope="session")
def checkpoint_name(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--checkpoint"))


class Service:
    """The port belongs to one data directory at a time; asking for another one restarts the server."""

    def __init__(self, argv: list[str], log: Path) -> None:
        self._argv = argv
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._directory: Path | None = None
        self._broken: dict[Path, str] = {}

    def serve(self, directory: Path) -> None:
        if directory in self._broken:
            pytest.fail(f"the server did not start for an earlier test: {self._broken[directory]}")
        if self._process and self._process.poll() is None and self._directory == directory:
            return
        self.stop()
        if answers():
            pytest.fail(f"port {ADDRESS[1]} is taken by another program")
        command = [*self._argv, "--data", str(directory)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._directory = directory
        reason = self._wait_until_it_answers(self._process)
        if reason:
            self.stop()
            output = self._log.read_text(encoding="utf-8", errors="replace")
            self._broken[directory] = f"ran {shlex.join(command)}, {reason}; output:\n{output}"
            pytest.fail(self._broken[directory])

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> str | None:
        end = time.monotonic() + SECONDS
        while process.poll() is None and time.monotonic() < end:
            if answers():
                return None
            time.sleep(0.01)
        if process.poll() is None:
            return f"nothing listened on port {ADDRESS[1]} within {SECONDS} s"
        return f"it ended with status {process.returncode}"

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(SECONDS)
        end = time.monotonic() + SECONDS
        while answers() and time.monotonic() < end:
            time.sleep(0.01)


def answers() -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(ADDRESS) == 0


class Board:
    """Requests to the server of one data directory, which is started by the first request."""

    def __init__(self, service: Service, directory: Path) -> None:
        self._service = service
        self.directory = directory

    def ask(self, method: str, path: str, body: object = None, *, raw: bytes = b"") -> tuple[int, Any]:
        self._service.serve(self.directory)
        data = raw if body is None else json.dumps(body).encode()
        url = f"http://{ADDRESS[0]}:{ADDRESS[1]}{path}"
        request = urllib.request.Request(url, data=data or None, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=SECONDS) as response:
                return response.status, self._value(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, self._value(error)

    def _value(self, response: Any) -> Any:
        content = response.read()
        if not content:
            return None
        kind = response.headers.get_content_type()
        assert kind == "application/json", f"expected a JSON answer, found {kind}: {content!r}"
        return json.loads(content)

    def expect(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        status: int,
        value: object = None,
        raw: bytes = b"",
    ) -> None:
        __tracebackhide__ = True
        found = self.ask(method, path, body, raw=raw)
        if found != (status, value):
            asked = f"{method} {path} {raw!r}" if body is None else f"{method} {path} {json.dumps(body)}"
            wanted, came = f"{status} {json.dumps(value)}", f"{found[0]} {json.dumps(found[1])}"
            pytest.fail(f"asked: {asked}\nexpected: {wanted}\nfound: {came}")

    def pin(self, text: str, **fields: object) -> int:
        """A new note; its id."""
        status, note = self.ask("POST", "/notes", {"text": text, **fields})
        assert status == 201, f"asked: POST /notes {text!r} {fields}\nexpected: 201\nfound: {status} {note}"
        return int(note["id"])

    def restart(self) -> None:
        self._service.stop()


@pytest.fixture(scope="session")
def service(entrypoint_argv: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(entrypoint_argv, tmp_path_factory.mktemp("log") / "server.log")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def board(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Board:
    """Shared by most tests, so they look only at notes of their own."""
    return Board(service, tmp_path_factory.mktemp("board"))


@pytest.fixture
def own_board(service: Service, tmp_path: Path) -> Board:
    """Empty, for tests that look at the whole board or restart it."""
    return Board(service, tmp_path)
