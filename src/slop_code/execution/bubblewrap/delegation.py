"""Control groups of version 2 that were delegated to a user, as `systemd-run --user --scope -p Delegate=yes` does."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from slop_code.errors import InfrastructureError
from slop_code.execution.bubblewrap.probe_results import ProbeResults
from slop_code.execution.bubblewrap.user_scope import OWN_GROUP, enter_user_scope
from slop_code.execution.process import capture

LEAF = "slop-code.evaluators"
"""Group of the processes that were in the delegated group itself: a group whose groups have limits has no processes."""

DELEGATED = "user.delegate"
"""Attribute by which the system's systemd marks the groups that it leaves to others. That of a user may not mark them,
and is asked. All other groups are systemd's own, even where their files belong to this user."""

_by_systemd = ProbeResults[bool](bool)
"""Answers of systemd by the name of a unit: True for one that is delegated."""

QUESTION_S = 20
MAX_MOVES = 100


def can_delegate() -> bool:
    """True where a systemd manages groups of version 2."""
    return Path("/run/systemd/system").is_dir() and Path("/sys/fs/cgroup/cgroup.controllers").exists()


def own_delegated_group(root: Path) -> Path | None:
    """The delegated group that this process is in, which may be a new scope of the user's systemd."""
    group = delegated_group(root, Path(OWN_GROUP).read_text())
    if group is not None:
        return group
    enter_user_scope()
    return delegated_group(root, Path(OWN_GROUP).read_text())


def delegated_group(root: Path, own: str) -> Path | None:
    """The delegated group that this process is in. `own` is the content of `/proc/self/cgroup`."""
    names = [line.removeprefix("0::/") for line in own.splitlines() if line.startswith("0::/")]
    if not names:
        return None
    group = root / names[0]
    if group.name == LEAF:  # this process was moved before
        group = group.parent
    return group if _is_delegated(group) else None


def _is_delegated(group: Path) -> bool:
    if not all(os.access(group / name, os.W_OK) for name in ("", "cgroup.procs", "cgroup.subtree_control")):
        return False
    with contextlib.suppress(OSError):
        if os.getxattr(group, DELEGATED) == b"1":
            return True
    return _by_systemd.get(group.name, lambda: _says_systemd(group.name))


def _says_systemd(unit: str) -> bool:
    question = ["systemctl", "--user", "show", "--property=Delegate", "--value", "--", unit]
    try:
        return capture(question, QUESTION_S).output.strip() == "yes"
    except InfrastructureError:  # there is no systemd, or it does not answer
        return False


def leave_to_leaf(group: Path) -> None:
    """Move all processes of a delegated group to its leaf; OSError if more and more of them appear."""
    leaf = group / LEAF
    leaf.mkdir(exist_ok=True)
    for _ in range(MAX_MOVES):
        processes = (group / "cgroup.procs").read_text().split()
        if not processes:
            return
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                (leaf / "cgroup.procs").write_text(process)
    raise OSError(f"{group}: it does not become empty")
