"""Control group of version 2 for the boxes of an evaluator that is root, which run as another user.

A process enters a group if its user may write to `cgroup.procs` of that group and of the closest group that both groups
are in. So boxes begin in a group of their own, and enter groups next to it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import threading
from typing import TYPE_CHECKING

from slop_code.execution.bubblewrap.delegation import LEAF

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PREFIX = "slop-code.user-"
CONTROLLERS = ("+memory", "+pids")

_lock = threading.Lock()
_made: dict[Path, Path | None] = {}


def group_of_boxes(root: Path, user: int, controllers: Sequence[str] = CONTROLLERS) -> Path | None:
    """The group of this evaluator, made at the first call; None where it cannot be made. Boxes begin in its `LEAF`."""
    group = root / f"{PREFIX}{user}"
    with _lock:
        if group not in _made:
            _remove_abandoned(root)
            try:
                _make(group, user, controllers)
                _made[group] = group
            except OSError:
                _made[group] = None
        return _made[group]


def _make(group: Path, user: int, controllers: Sequence[str]) -> None:
    group.mkdir()
    atexit.register(_remove_own, group, os.getpid())
    descriptor = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held until this process ends
    for parent in (group.parent, group):
        (parent / "cgroup.subtree_control").write_text(" ".join(controllers))
        with contextlib.suppress(OSError):  # not every kernel limits CPU time
            (parent / "cgroup.subtree_control").write_text("+cpu")
    (group / LEAF).mkdir()
    for folder in (group, group / LEAF):
        os.chown(folder / "cgroup.procs", user, user)


def _remove_own(group: Path, process: int) -> None:
    if os.getpid() == process:  # and no child that was forked from it
        _remove(group)


def _remove(group: Path) -> None:
    for folder in (*group.glob("*/"), group):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _remove_abandoned(root: Path) -> None:
    """Remove the groups of killed evaluators: a living one holds the lock of its group."""
    for group in root.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(group)
            finally:
                os.close(descriptor)
