"""Scope of the user's systemd for this process, in which an ordinary user can make control groups.

A login session is a group of root's, and its processes may not enter groups elsewhere by themselves. systemd moves a
process to a new scope on request, as it does for `systemd-run --user --scope`.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import secrets
import threading
import time
from pathlib import Path

from slop_code.errors import InfrastructureError
from slop_code.execution.process import capture, start_idle

OWN_GROUP = "/proc/self/cgroup"
PREFIX = "slop-code."
MANAGER = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
ANSWER_S = 20.0
POLL_S = 0.005

_lock = threading.Lock()


def enter_user_scope() -> None:
    """Move this process to a scope of its own, once; it stays where it is if systemd cannot be asked or refuses."""
    with _lock:
        _enter(os.getpid())


def is_own_scope(group: Path) -> bool:
    """True for a scope that an evaluator asked for."""
    return group.name.startswith(PREFIX) and group.suffix == ".scope"


@functools.cache
def _enter(process: int) -> None:
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    if not may_leave(Path(OWN_GROUP).read_text(), os.getuid()) or not os.path.exists(f"{runtime}/bus"):
        return
    unit = f"{PREFIX}{process}-{secrets.token_hex(4)}.scope"
    # logind ends the user's systemd with the last session, and a session with its last process: `nohup` would not help.
    keeper = start_idle()
    try:
        answer = capture(scope_request(unit, process), ANSWER_S, {**os.environ, "XDG_RUNTIME_DIR": runtime})
        is_moved = answer.exit_code == 0 and _is_moved(unit)
    except InfrastructureError:
        is_moved = False
    if is_moved:
        atexit.register(keeper.communicate)
    else:
        keeper.communicate()


def may_leave(own: str, user: int) -> bool:
    """True in a login session, or a scope, of this user. `own` is the content of `/proc/self/cgroup`.

    A service, and a job of a scheduler, keep their processes: it is they who limit, count and end them.
    """
    scope = re.compile(rf"0::/user\.slice/user-{user}\.slice/(.*/)?[^/]+\.scope")
    return any(map(scope.fullmatch, own.splitlines()))


def scope_request(unit: str, process: int) -> list[str]:
    """A command that asks for a delegated scope with this process in it."""
    properties = ["2", "PIDs", "au", "1", str(process), "Delegate", "b", "true"]
    call = ["StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "fail", *properties, "0"]
    return ["busctl", "--user", "call", *MANAGER, *call]


def _is_moved(unit: str) -> bool:
    """The answer comes before the move."""
    deadline = time.monotonic() + ANSWER_S
    while not any(line.endswith(f"/{unit}") for line in Path(OWN_GROUP).read_text().splitlines()):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True
