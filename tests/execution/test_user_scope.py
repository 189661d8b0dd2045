"""A scope of the user's systemd. `make vm` tries the real one; here a small program stands for `busctl`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from slop_code.execution.bubblewrap import user_scope
from slop_code.execution.bubblewrap.cgroups import authority_of
from slop_code.execution.bubblewrap.user_scope import enter_user_scope, is_own_scope, may_leave, scope_request
from tests.process_checks import ends

PATIENCE_S = 600
SLICE = "user.slice/user-1000.slice"
SERVICE = f"{SLICE}/user@1000.service"


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (f"{SLICE}/session-3.scope", True),
        (f"{SERVICE}/app.slice/app-org.gnome.Terminal.slice/vte-spawn-1.scope", True),
        (f"{SERVICE}/app.slice/runner.service", False),
        (f"{SERVICE}/app.slice/run-1.scope/inner", False),
        ("user.slice/user-1001.slice/session-3.scope", False),
        ("system.slice/slurmstepd.scope/job_1", False),
        ("system.slice/docker-1.scope", False),
        ("user.slice", False),
        ("", False),
    ],
)
def test_only_sessions_and_scopes_of_the_user_are_left(group, expected):
    assert may_leave(f"1:name=systemd:/x\n0::/{group}\n", 1000) is expected


def test_in_version_1_nothing_is_left():
    assert not may_leave(f"4:memory:/{SLICE}/session-3.scope\n", 1000)


def test_the_groups_say_by_what_right_they_were_made(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert authority_of([tmp_path / "slop-code.1-ab.scope/slop-code-1-cd"]) == "scope"
    assert authority_of([tmp_path / "run-1.scope/slop-code-1-cd"]) == "delegation"


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A login session with a bus: `busctl` records its arguments, and then runs a script."""
    group, calls = tmp_path / "own", tmp_path / "calls"
    group.write_text(f"0::/user.slice/user-{os.getuid()}.slice/session-1.scope\n")
    (tmp_path / "bus").touch()
    monkeypatch.setattr(user_scope, "OWN_GROUP", str(group))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    user_scope._enter.cache_clear()

    def answer(script):
        (tmp_path / "busctl").write_text(f'#!/bin/sh\necho "$@" >> {calls}\n{script}\n')
        (tmp_path / "busctl").chmod(0o755)
        return group, lambda: calls.read_text().splitlines() if calls.exists() else []

    yield answer
    user_scope._enter.cache_clear()


MOVE = 'echo "0::/user.slice/user@1.service/app.slice/$8" > {}'


@pytest.mark.e2e
def test_a_process_is_moved_once(session, tmp_path):
    group, calls = session(MOVE.format(tmp_path / "own"))
    enter_user_scope()
    enter_user_scope()
    (call,) = calls()
    unit = call.split()[7]
    assert call.split() == scope_request(unit, os.getpid())[1:]
    assert group.read_text().strip().endswith(f"/{unit}")
    assert is_own_scope(tmp_path / unit)


@pytest.mark.e2e
@pytest.mark.parametrize("script", ["exit 1", "kill -9 $$"])
def test_a_refusal_changes_nothing_and_is_not_asked_for_again(session, script):
    group, calls = session(script)
    before = group.read_text()
    enter_user_scope()
    enter_user_scope()
    assert group.read_text() == before
    assert len(calls()) == 1


def test_without_a_bus_of_the_user_nobody_is_asked(session, tmp_path):
    _, calls = session("exit 0")
    (tmp_path / "bus").unlink()
    enter_user_scope()
    assert calls() == []


KEPT = """
import os, sys, signal
from slop_code.execution.process import start_idle
print(start_idle().pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.e2e
def test_what_keeps_the_session_open_ends_with_a_killed_evaluator():
    with subprocess.Popen([sys.executable, "-c", KEPT], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        keeper = int(process.stdout.readline())
    assert ends(keeper, PATIENCE_S)
