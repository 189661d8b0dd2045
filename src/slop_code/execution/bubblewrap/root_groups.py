"""Control group of version 2 for the boxes of an evaluator that is root, which run as another user.

A process enters a group if its user may write to `cgroup.procs` of that group and of the closest group that both groups
are in. So boxes begin in a group of their own, and enter groups next to it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from typing import TYPE_CHECKING

from slop_code.execution.bubblewrap.delegation import LEAF
from slop_code.execution.bubblewrap.group_locks import new_group, remove_abandoned_groups, remove_group

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PREFIX = "slop-code.user-"
CONTROLLERS = ("+memory", "+pids")

_lock = threading.Lock()
_made: dict[tuple[Path, int], Path] = {}


def group_of_boxes(root: Path, user: int, controllers: Sequence[str] = CONTROLLERS) -> Path | None:
    """The group of this evaluator, made at the first call; None where it cannot be made. Boxes begin in its `LEAF`.

    A failure is not kept, since it takes no time to try again.
    """
    with _lock:
        if (root, user) not in _made:
            remove_abandoned_groups(root, PREFIX)
            try:
                _made[root, user] = _make(root, user, controllers)
            except OSError:
                return None
        return _made[root, user]


def _make(root: Path, user: int, controllers: Sequence[str]) -> Path:
    group, lock = new_group(root, f"{PREFIX}{user}-")  # locked until this process ends
    try:
        _set_up(root, group, user, controllers)
    except OSError:
        remove_group(group)
        os.close(lock)
        raise
    atexit.register(_remove_own, group, os.getpid())
    return group


def _set_up(root: Path, group: Path, user: int, controllers: Sequence[str]) -> None:
    for parent in (root, group):
        (parent / "cgroup.subtree_control").write_text(" ".join(controllers))
        with contextlib.suppress(OSError):  # not every kernel limits CPU time
            (parent / "cgroup.subtree_control").write_text("+cpu")
    (group / LEAF).mkdir()
    for folder in (group, group / LEAF):
        os.chown(folder / "cgroup.procs", user, user)


def _remove_own(group: Path, process: int) -> None:
    if os.getpid() == process:  # and no child that was forked from it
        remove_group(group)
