"""The scripts that bring a browser and Node.js to the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.e2e
HERE = Path(__file__).parent
# main() for an ordinary user, or for root, whoever runs the tests
AS_USER = """
import importlib, os, sys
sys.path.insert(0, sys.argv[1])
script = importlib.import_module(sys.argv[2])
os.geteuid = lambda: int(sys.argv[3])
sys.exit(script.main(sys.argv[4:]))
"""
SHOW = ["/bin/sh", "-c", "echo ran:$SLOP_CODE_TEST_BROWSER:$SLOP_CODE_TEST_NO_BROWSER; exit 7"]
APT = """echo "$@" >> {folder}/apt.log; [ "$2" = update ] || {{ echo '#!/bin/sh' > {folder}/{program}
/bin/chmod +x {folder}/{program}; }}"""
BROWSER, NODE = "with_browser", "with_node"
# the script, the program it brings, Debian's package, what it says where there is none
BOTH = pytest.mark.parametrize(
    ("script", "program", "package", "missing"),
    [
        (BROWSER, "chromium", "chromium", "no browser for the tests: no chromium here"),
        (NODE, "node", "nodejs", "no Node.js for the tests: no node here"),
    ],
    ids=["browser", "node"],
)


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

    def run(script: str, command: list[str], user: int = 1000, **variables: str) -> tuple[int, str, str]:
        argv = [sys.executable, "-c", AS_USER, str(HERE), script, str(user), *command]
        done = subprocess.run(argv, env={"PATH": str(tmp_path), **variables}, capture_output=True, text=True)
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    return run


@BOTH
def test_one_that_is_there_is_used_without_a_word(script, program, package, missing, tool, outcome):
    found = tool(program, "")
    told = found if script == BROWSER else ""
    assert outcome(script, SHOW, CI="true") == (7, f"ran:{told}:", "")


@BOTH
def test_root_gets_debians(script, program, package, missing, tool, outcome, tmp_path):
    tool("apt-get", APT.format(folder=tmp_path, program=program))
    told = f"ran:{tmp_path}/chromium:" if script == BROWSER else "ran::"
    assert outcome(script, SHOW, user=0, CI="true") == (7, told, f"· installing {package}")
    assert outcome(script, SHOW, user=0, CI="true") == (7, told, "")
    asked = (tmp_path / "apt.log").read_text().splitlines()
    assert asked == ["-qq update", f"-qq install -y --no-install-recommends {package}"]


@BOTH
def test_where_every_check_counts_it_is_a_failure_before_anything_runs(script, program, package, missing, outcome):
    status, printed, said = outcome(script, SHOW, CI="true")
    assert (status, printed) == (1, "")
    assert said.startswith(missing)


@BOTH
def test_an_installation_that_fails(script, program, package, missing, tool, outcome):
    tool("apt-get", "echo no such package >&2; exit 100")
    status, printed, said = outcome(script, SHOW, user=0, CI="true")
    assert (status, printed) == (1, "")
    assert "no such package" in said
    assert outcome(script, SHOW, user=0)[0] == 7


@BOTH
def test_what_cannot_be_run(script, program, package, missing, tool, outcome):
    tool(program, "")
    assert outcome(script, ["/no/such"]) == (127, "", "/no/such: No such file or directory")
    assert outcome(script, [])[0] == 2


def test_an_ordinary_users_command_gets_the_reason_why_there_is_no_browser(tool, outcome):
    tool("apt-get", "exit 1")
    reason = "no chromium here, and it takes root and apt-get to install it (Debian's chromium)"
    assert outcome(BROWSER, SHOW, CI="false")[:2] == (7, f"ran::{reason}")


def test_an_ordinary_users_command_runs_without_node(outcome):
    assert outcome(NODE, SHOW, CI="false") == (7, "ran::", "")


def test_another_browser_can_be_named(outcome):
    variables = {"SLOP_CODE_TEST_BROWSER": "/opt/mine", "SLOP_CODE_TEST_NO_BROWSER": "old"}
    assert outcome(BROWSER, SHOW, **variables) == (7, "ran:/opt/mine:", "")
