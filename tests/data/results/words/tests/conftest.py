import shlex
import subprocess

import pytest


def pytest_addoption(parser):
    parser.addoption("--entrypoint", required=True)
    parser.addoption("--checkpoint", required=True)


@pytest.fixture
def say(request):
    words = shlex.split(request.config.getoption("--entrypoint"))

    def call(*arguments):
        return subprocess.run([*words, *arguments], capture_output=True, text=True, timeout=5).stdout.strip()

    return call
