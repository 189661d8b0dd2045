import shlex
import subprocess

import pytest


def pytest_addoption(parser):
    parser.addoption("--entrypoint", required=True)
    parser.addoption("--checkpoint", required=True)


@pytest.fixture(scope="session")
def run(request):
    entrypoint = shlex.split(request.config.getoption("--entrypoint"))

    def call(*arguments):
        return subprocess.run([*entrypoint, *arguments], capture_output=True, text=True)

    return call
