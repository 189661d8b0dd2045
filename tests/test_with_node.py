"""The script that brings Node.js to the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
# main() for an ordinary user, or for root, whoever runs the tests
AS_USER = """
import os, sys
sys.path.insert(0, sys.argv[1])
import with_node
os.geteuid = lambda: int(sys.argv[2])
sys.exit(with_node.main(sys.argv[3:]))
"""
COMMAND = ["/bin/sh", "-c", "echo ran; exit 7"]


def tool(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def outcome(tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """Only the test's own tools are there."""

    def run(command: list[str], user: int = 1000, **variables: str) -> tuple[int, str, str]:
        argv = [sys.executable, "-c", AS_USER, str(HERE), str(user), *command]
        done = subprocess.run(argv, env={"PATH": str(tmp_path), **variables}, capture_output=True, text=True)
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    return run


def test_one_that_is_there_is_used_without_a_word(outcome, tmp_path):
    tool(tmp_path, "node", "")
    assert outcome(COMMAND, CI="true") == (7, "ran", "")


def test_root_gets_debians(outcome, tmp_path):
    tool(tmp_path, "apt-get", f'echo "$@" >> {tmp_path}/apt.log')
    assert outcome(COMMAND, user=0, CI="true") == (7, "ran", "· installing nodejs")
    told = (tmp_path / "apt.log").read_text().splitlines()
    assert told == ["-qq update", "-qq install -y --no-install-recommends nodejs"]


def test_an_ordinary_users_command_runs_without_one(outcome):
    assert outcome(COMMAND, CI="false") == (7, "ran", "")


def test_where_every_check_counts_it_is_a_failure_before_anything_runs(outcome):
    status, printed, said = outcome(COMMAND, CI="true")
    assert (status, printed) == (1, "")
    assert said.startswith("no Node.js for the tests: no node here")


@pytest.mark.parametrize(("command", "status"), [([], 2), (["/nowhere/command"], 127)], ids=["none", "missing"])
def test_what_cannot_be_run(outcome, command, status):
    assert outcome(command)[0] == status
