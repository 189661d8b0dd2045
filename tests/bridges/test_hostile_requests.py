"""Hostile requests: each is refused with a clear error, and nothing is written outside of the service's folders."""

from __future__ import annotations

import contextlib
import json
import os
import socket

import pytest

from tests.bridges.hostile_requests import all_requests
from tests.bridges.service_process import forked_service
from tests.conftest import write_files

REQUESTS = all_requests()
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def service(cache, need_bubblewrap, make_problem, tmp_path_factory):
    need_bubblewrap()
    made = make_problem(
        {"test_checkpoint_1.py": "def test_a(run): assert run().returncode == 0"}, config={"name": "adding"}
    )
    folder = tmp_path_factory.mktemp("problems")
    made.path.rename(folder / "adding")
    home = tmp_path_factory.mktemp("home")
    write_files(home, {"allowed/good/main.py": "", "kept": "kept"})
    options = ("-j", "1", "--allow", str(home / "allowed"), "--max-request", "48M")
    with forked_service(folder, home / "state", *options, cwd=home) as process:
        process.home = home
        yield process
        with process.client() as client:
            answer = client.post(
                "/evaluate", json={"problem": "adding", "checkpoint": 1, "submission": {"files": {"main.py": ""}}}
            )
        assert answer.json()["reward"] == 1.0, "it still evaluates"
        assert process.end() == 0
        assert process.lines[1:] == []
        assert sorted(os.listdir(home)) == ["allowed", "kept", "state"]
        assert sorted(os.listdir(home / "state")) == [".lock", "token"]
        assert [path.name for path in cache.sessions.iterdir()] == []


def test_there_are_at_least_200_kinds():
    assert len({name for name, _, _ in REQUESTS}) == len(REQUESTS) >= 200


@pytest.mark.parametrize(
    ("expected", "request_bytes"), [each[1:] for each in REQUESTS], ids=[each[0] for each in REQUESTS]
)
def test_it_is_refused_with_a_reason(service, expected, request_bytes):
    """Status 400 is the server's: such a request does not reach the application."""
    host, token = service.url.removeprefix("http://"), service.headers["Authorization"]
    address, _, port = host.partition(":")
    with socket.create_connection((address, int(port)), timeout=100) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may be refused before its end
            connection.sendall(request_bytes.replace(b"HOST", f"{host}\r\nAuthorization: {token}".encode()))
        status, body = answer_of(connection)
    assert status == expected, body[:300]
    assert b"Traceback" not in body
    assert status == 400 or json.loads(body)["error"]


def answer_of(connection: socket.socket) -> tuple[int, bytes]:
    with connection.makefile("rb") as stream:
        status, size = int(stream.readline().split()[1]), 0
        while (line := stream.readline().strip().lower()) != b"":
            size = int(line.partition(b":")[2]) if line.startswith(b"content-length:") else size
        return status, stream.read(size)
