import shlex
import subprocess
from pathlib import Path

import pytest


def pytest_addoption(parser):
    parser.addoption("--entrypoint", required=True)
    parser.addoption("--checkpoint", required=True)


@pytest.fixture(scope="session")
def entrypoint(request):
    return shlex.split(request.config.getoption("--entrypoint"))


@pytest.fixture(scope="session")
def call(entrypoint):
    """Let the submission run some Python to its end."""

    def run(code, *arguments, **options):
        options = {"capture_output": True, "text": True, "timeout": 90, **options}
        return subprocess.run([*entrypoint, code, *map(str, arguments)], **options)

    return run


@pytest.fixture(scope="session")
def says(call):
    """What some Python prints in the submission; it has to end well."""

    def run(code, *arguments, **options):
        done = call(code, *arguments, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.rstrip("\n")

    return run


@pytest.fixture
def start(entrypoint):
    """Start the submission on some Python; it is killed when the test ends."""
    started = []

    def popen(code, *arguments, **options):
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, **options}
        started.append(subprocess.Popen([*entrypoint, code, *map(str, arguments)], **options))
        return started[-1]

    yield popen
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture(scope="session")
def data():
    return Path(__file__).parent / "data"
