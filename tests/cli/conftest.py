"""Fixtures of the command and of run folders."""

import pytest

from slop_code.cli.main import run
from tests.run_world import world

__all__ = ["world"]


@pytest.fixture
def few_pythons(tmp_path, monkeypatch):
    """Only those of the system: uv starts each one that it finds, which takes seconds."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "pythons"))


@pytest.fixture
def slop_code(capsys):
    """The command in this process, with its exit status, stdout and stderr."""

    def call(*arguments):
        status = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return status, printed.out, printed.err

    return call
