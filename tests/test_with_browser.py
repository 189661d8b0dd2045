"""The script that installs a browser for the tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.private_daemon import APT_FOLDER, apt_lock

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.e2e
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
APT = """echo "$@" >> {folder}/apt.log; [ "$2" = update ] || {{ echo '#!/bin/sh' > {folder}/chromium-headless-shell
/bin/chmod +x {folder}/chromium-headless-shell; }}"""


@pytest.fixture
def tool(tmp_path: Path) -> Callable[[str, str], Path]:
    def make(name: str, script: str) -> Path:
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
        return tmp_path / name

    return make


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Only the test's own tools are there."""

    def run(command: list[str], user: int = 1000, **variables: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", AS_USER, str(HERE), str(user), *command]
        environment = {"PATH": str(tmp_path), **variables}
        return subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return run


def outcome_of(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    printed, said = process.communicate()
    return process.returncode, printed.strip(), said.strip()


@pytest.fixture
def outcome(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., tuple[int, str, str]]:
    return lambda command, user=1000, **variables: outcome_of(start(command, user, **variables))


def test_an_installed_browser_is_used_without_a_message(tool, outcome):
    browser = tool("chromium-headless-shell", "")
    assert outcome(SHOW, CI="true") == (7, f"ran:{browser}:", "")


def test_root_installs_debians_browser(tool, outcome, tmp_path):
    tool("apt-get", APT.format(folder=tmp_path))
    printed = f"ran:{tmp_path}/chromium-headless-shell:"
    assert outcome(SHOW, user=0, CI="true") == (7, printed, "· installing chromium-headless-shell libatomic1")
    assert outcome(SHOW, user=0, CI="true") == (7, printed, "")
    asked = (tmp_path / "apt.log").read_text().splitlines()
    assert asked == [
        "-qq update",
        "-qq install -y --no-install-recommends -o DPkg::Lock::Timeout=600 chromium-headless-shell libatomic1",
    ]


@pytest.mark.skipif(not Path(APT_FOLDER).exists(), reason="no packages of Debian here")
def test_two_installations_do_not_meet(tool, start):
    tool("apt-get", "echo it is locked >&2; exit 100")
    with apt_lock():
        second = start(SHOW, user=0, CI="true")
        waits = re.compile(rf"-> FLOCK +ADVISORY +WRITE {second.pid} ")
        while second.poll() is None and not waits.search(Path("/proc/locks").read_text()):
            pass
        browser = tool("chromium-headless-shell", "")
    assert outcome_of(second) == (7, f"ran:{browser}:", "")


def test_in_ci_a_missing_browser_fails_before_anything_runs(outcome):
    status, printed, said = outcome(SHOW, CI="true")
    assert (status, printed) == (1, "")
    assert said.startswith("no browser for the tests: no chromium-headless-shell here")


def test_a_failed_installation_is_a_failure_in_ci_alone(tool, outcome):
    tool("apt-get", "echo no such package >&2; exit 100")
    status, printed, said = outcome(SHOW, user=0, CI="true")
    assert (status, printed) == (1, "")
    assert "no such package" in said
    assert outcome(SHOW, user=0)[0] == 7


def test_a_command_that_cannot_be_run_is_status_127(tool, outcome):
    tool("chromium-headless-shell", "")
    assert outcome(["/no/such"]) == (127, "", "/no/such: No such file or directory")
    assert outcome([])[0] == 2


def test_an_ordinary_users_command_gets_the_reason_why_there_is_no_browser(tool, outcome):
    tool("apt-get", "exit 1")
    package = "chromium-headless-shell"
    reason = f"no {package} here, and it takes root and apt-get to install it (Debian's {package} libatomic1)"
    assert outcome(SHOW, CI="false")[:2] == (7, f"ran::{reason}")


def test_another_browser_can_be_named(outcome):
    variables = {"SLOP_CODE_TEST_BROWSER": "/opt/mine", "SLOP_CODE_TEST_NO_BROWSER": "old"}
    assert outcome(SHOW, **variables) == (7, "ran:/opt/mine:", "")
