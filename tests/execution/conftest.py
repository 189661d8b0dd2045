from __future__ import annotations

import pytest

from slop_code.execution.cache import Cache
from slop_code.execution.docker.engine import Engine
from slop_code.execution.helper import helper_path


@pytest.fixture(scope="session")
def helper():
    """The native helper that was built for this machine."""
    return str(helper_path())


@pytest.fixture
def empty_cache(tmp_path):
    (tmp_path / "cache").mkdir()
    return Cache(tmp_path / "cache")


@pytest.fixture
def engine(tmp_path):
    """`engine("echo hello")`: an engine that runs this script, and records its arguments in `calls`."""

    def make(script):
        path = tmp_path / "docker"
        path.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{script}\n')
        path.chmod(0o755)
        return Engine(str(path))

    return make


@pytest.fixture
def calls(tmp_path):
    return lambda: (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []
