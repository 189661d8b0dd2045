"""A reward service in a process of its own, with a client, and what it is asked."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, cast

import httpx

from slop_code.__main__ import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

FORK_SERVER = multiprocessing.get_context("forkserver")
FORK_SERVER.set_forkserver_preload([__name__, "slop_code.cli.serve_command", "slop_code.bridges.service.server"])
LISTENING = re.compile(r"listening on ([^\s;]+)")
TOKEN_FILE = re.compile(r"; token in ([^;\n]+)")
RESUMED = re.compile(r"; (\d+) durable jobs are resumed")
TIMEOUT = httpx.Timeout(120)

ADDING_TESTS = """
def test_it_adds(run):
    assert run("1", "2").stdout == "3\\n"

def test_it_refuses_words(run):
    assert run("a", "b").returncode == 2
"""
GOOD = "import sys\ntry:\n    print(sum(map(int, sys.argv[1:])))\nexcept ValueError:\n    sys.exit(2)\n"
HALF = "import sys\nprint(sum(map(int, sys.argv[1:])))\n"
SLEEPING_TESTS = """
import time

def test_slow(run):
    time.sleep(600)
"""


def serve(argv: list[str], stderr: Connection, cwd: str, before: str) -> None:
    """`slop-code serve` in the forked process; `before` is Python code that runs first."""
    os.dup2(stderr.fileno(), 2)
    stderr.close()
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115  (the inherited one is buffered)
    os.chdir(cwd)
    sys.argv = ["slop-code", *argv]
    exec(before, {})  # noqa: S102
    main()


class ServiceProcess:
    """Ended by `end`, or killed."""

    def __init__(self, problems: Path, state: Path, *options: str, before: str = "", cwd: Path | None = None) -> None:
        """`before`: Python code that runs first in the process."""
        argv = ["serve", "--port", "0", "--problems-dir", str(problems), "--state", str(state), *options]
        self._stderr = self._start(argv, before, cwd)
        self.lines: list[str] = []
        match = None
        while match is None:
            line = self._stderr.readline()
            assert line, f"it ended: {''.join(self.lines)}"
            self.lines.append(line)
            match = LISTENING.search(line)
        self.url, resumed = match[1], RESUMED.search(self.lines[-1])
        token = TOKEN_FILE.search(line)
        self.token_file = Path(token[1]) if token else None
        self.resumed = int(resumed[1]) if resumed else 0
        self._reader = threading.Thread(target=self._read, daemon=True)  # a full pipe would stop it
        self._reader.start()

    def _start(self, argv: list[str], before: str, cwd: Path | None) -> IO[str]:
        program = f"{before}\nfrom slop_code.__main__ import main\nmain()"
        argv = [sys.executable, "-c", program, *argv]
        self.process: Any = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, cwd=cwd)
        return cast("IO[str]", self.process.stderr)

    def _wait(self) -> int:
        return int(self.process.wait(timeout=120))

    def send_signal(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)

    def _read(self) -> None:
        for line in self._stderr:
            self.lines.append(line)

    @property
    def headers(self) -> dict[str, str]:
        """The token, as requests bring it."""
        return {"Authorization": f"Bearer {self.token_file.read_text().strip()}"} if self.token_file else {}

    def head(self, route: str, size: int) -> bytes:
        """The bytes before a body of this size."""
        fields = {"Host": "127.0.0.1", "Content-Length": size, **self.headers}
        lines = [f"POST {route} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        return "\r\n".join([*lines, "", ""]).encode()

    def client(self, **options: Any) -> httpx.Client:
        defaults = {"timeout": TIMEOUT, "headers": self.headers}
        return httpx.Client(base_url=self.url, trust_env=False, **{**defaults, **options})

    def end(self, number: int = signal.SIGTERM) -> int:
        self.send_signal(number)
        status = self._wait()
        self._reader.join()
        self._stderr.close()
        return status


class ForkedService(ServiceProcess):
    """Forked from a process that has the modules already, as their import takes most of a start.

    Environment variables are those of the first start in this pytest process; later changes do not reach it.
    """

    def _start(self, argv: list[str], before: str, cwd: Path | None) -> IO[str]:
        reader, writer = FORK_SERVER.Pipe(duplex=False)
        self.process = FORK_SERVER.Process(target=serve, args=(argv, writer, str(cwd or os.getcwd()), before))
        self.process.start()
        writer.close()
        with reader:
            return os.fdopen(os.dup(reader.fileno()), encoding="utf-8")

    def _wait(self) -> int:
        self.process.join(timeout=120)
        assert self.process.exitcode is not None
        return int(self.process.exitcode)

    def send_signal(self, number: int) -> None:
        if self.process.exitcode is None:
            os.kill(self.process.pid, number)


@contextlib.contextmanager
def running_service(problems: Path, state: Path, *options: str, **variables: Any) -> Iterator[ServiceProcess]:
    with _killed_at_the_end(ServiceProcess(problems, state, *options, **variables)) as service:
        yield service


@contextlib.contextmanager
def forked_service(problems: Path, state: Path, *options: str, **variables: Any) -> Iterator[ServiceProcess]:
    with _killed_at_the_end(ForkedService(problems, state, *options, **variables)) as service:
        yield service


@contextlib.contextmanager
def _killed_at_the_end(service: ServiceProcess) -> Iterator[ServiceProcess]:
    try:
        yield service
    finally:
        service.end(signal.SIGKILL)


def request_for(program: str = GOOD, **fields: Any) -> dict[str, Any]:
    return {"problem": "adding", "checkpoint": 1, "submission": {"files": {"main.py": program}}, **fields}


def tar_of(files: dict[str, str], mode: Literal["w", "w:gz"] = "w:gz") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


def wait_until(holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 100
    while not (value := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


def running(client: httpx.Client) -> int:
    """Evaluations that run."""
    return int(client.get("/ready").json()["running"])
