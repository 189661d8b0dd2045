"""The script that brings a browser to the tests."""

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
import with_browser
os.geteuid = lambda: int(sys.argv[2])
sys.exit(with_browser.main(sys.argv[3:]))
"""
SHOW = ["/bin/sh", "-c", "echo ran:$SLOP_CODE_TEST_BROWSER:$SLOP_CODE_TEST_NO_BROWSER; exit 7"]
APT = """echo "$@" >> {folder}/apt.log; [ "$2" = update ] || {{ echo '#!/bin/sh' > {folder}/chromium
{chmod} +x {folder}/chromium; }}"""


@pytest.fixture
def tool(tmp_path: Path) -> Callable[[str, str], Path]:
    def make(name: str, script: str) -> Path:
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
        return tmp_path / name

    return make


@pytest.fixture
def outcome(tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """Only the test's own tools are there."""

    def run(command: list[str], user: int = 1000, **variables: str) -> tuple[int, str, str]:
        argv = [sys.executable, "-c", AS_USER, str(HERE), str(user), *command]
        done = subprocess.run(argv, env={"PATH": str(tmp_path), **variables}, capture_output=True, text=True)
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    return run


def test_a_browser_that_is_there_is_used_without_a_word(tool, outcome):
    chromium = tool("chromium", "")
    assert outcome(SHOW, SLOP_CODE_TEST_NO_BROWSER="old") == (7, f"ran:{chromium}:", "")


def test_another_one_can_be_named(outcome):
    assert outcome(SHOW, SLOP_CODE_TEST_BROWSER="/opt/mine") == (7, "ran:/opt/mine:", "")


def test_without_one_an_ordinary_users_command_gets_the_reason(tool, outcome):
    tool("apt-get", "exit 1")
    status, printed, _ = outcome(SHOW, CI="false")
    assert (status, printed) == (
        7,
        "ran::no chromium here, and it takes root and apt-get to install it (Debian's chromium)",
    )


def test_where_every_check_counts_it_is_a_failure_before_anything_runs(outcome):
    status, printed, said = outcome(SHOW, CI="true")
    assert (status, printed) == (1, "")
    assert said.startswith("no browser for the tests: no chromium here")


def test_root_gets_debians(tool, outcome, tmp_path):
    tool("apt-get", APT.format(folder=tmp_path, chmod="/bin/chmod"))
    assert outcome(SHOW, user=0) == (7, f"ran:{tmp_path}/chromium:", "· installing chromium")
    assert outcome(SHOW, user=0) == (7, f"ran:{tmp_path}/chromium:", "")
    told = (tmp_path / "apt.log").read_text().splitlines()
    assert told == ["-qq update", "-qq install -y --no-install-recommends chromium"]


def test_an_installation_that_fails(tool, outcome):
    tool("apt-get", "echo no such package >&2; exit 100")
    status, printed, _ = outcome(SHOW, user=0)
    assert status == 7
    assert "no such package" in printed
    assert outcome(SHOW, user=0, CI="true")[0] == 1


def test_a_command_that_is_not_there(tool, outcome):
    tool("chromium", "")
    assert outcome(["/no/such"]) == (127, "", "/no/such: No such file or directory")
    assert outcome([])[0] == 2
