"""Runs the submission as a command and compares all that came out of it."""

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SECONDS = 60

Run = Callable[..., subprocess.CompletedProcess[str]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--entrypoint", required=True, help="command that starts the submission")
    parser.addoption("--checkpoint", required=True, help="checkpoint the submission belongs to")


@pytest.fixture(scope="session")
def entrypoint_argv(request: pytest.FixtureRequest) -> list[str]:
    return shlex.split(request.config.getoption("--entrypoint"))


@pytest.fixture(scope="session")
def checkpoint_name(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--checkpoint"))


@pytest.fixture(scope="session")
def recipes() -> Path:
    return HERE / "data" / "recipes"


@pytest.fixture(scope="session")
def pantries() -> Path:
    return HERE / "data" / "pantries"


@pytest.fixture(scope="session")
def expected() -> Callable[[str], str]:
    return lambda name: (HERE / "data" / "expected" / f"{name}.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def units() -> Path:
    return Path(os.environ.get("SCBENCH_ASSET_UNITS") or HERE / "assets" / "units")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Put lines into a new file and return its path."""

    def put(*lines: str, name: str = "file.txt") -> Path:
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return put


@pytest.fixture
def run(entrypoint_argv: list[str]) -> Run:
    def call(*args: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
        argv = [*entrypoint_argv, *map(str, args)]
        return subprocess.run(
            argv, input=stdin, capture_output=True, encoding="utf-8", errors="replace", timeout=SECONDS
        )

    return call


@pytest.fixture
def check(run: Run) -> Callable[..., None]:
    """Run once; exit status and both outputs must be exactly as expected."""

    def compare(*args: object, stdout: str = "", stderr: str = "", code: int = 0, stdin: str = "") -> None:
        __tracebackhide__ = True
        done = run(*args, stdin=stdin)
        wanted, found = outcome(code, stdout, stderr), outcome(done.returncode, done.stdout, done.stderr)
        if found != wanted:
            pytest.fail(f"ran: {shlex.join(done.args)}\n\nexpected: {wanted}\n\nfound: {found}")

    return compare


def outcome(code: int, stdout: str, stderr: str) -> str:
    return f"exit status {code}\nstdout:\n{stdout.rstrip()}\nstderr:\n{stderr.rstrip()}"
