"""Control groups, where this user may make them (as a rule only root may): hard limits for a whole box.

Elsewhere resource limits and the watch in `slopbox serve` do the same, a little later.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.execution.helper import helper_path
from slop_code.execution.process import succeeds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path("/sys/fs/cgroup")
PREFIX = "slop-code-"
END_S = 30.0


def available(root: Path = ROOT) -> bool:
    """Whether groups with these limits can really be made, found out by making some."""
    with control_groups(1 << 30, 100, root) as groups:
        return bool(groups)


@contextlib.contextmanager
def control_groups(memory: int, processes: int, root: Path = ROOT) -> Iterator[list[Path]]:
    """Folders of fresh groups with these limits, none where that cannot be had; gone afterwards."""
    name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
    made: list[Path] = []
    try:
        for parent, files in _parents(root).items():
            _remove_empty(parent)
            made.append(parent / name)
            _make(made[-1], files, {"memory": memory, "processes": processes})
    except OSError:
        _end(made)
        made = []
    try:
        yield made
    finally:
        _end(made)


def _parents(root: Path) -> dict[Path, dict[str, str]]:
    """Where groups can be made, with the file that takes each limit: one tree in version 2, two in version 1."""
    if os.geteuid() != 0:
        return {}
    if (root / "cgroup.controllers").exists():
        have = (root / "cgroup.controllers").read_text().split()
        both = {"memory", "pids"} <= set(have) and os.access(root / "cgroup.subtree_control", os.W_OK)
        return {root: {"memory": "memory.max", "processes": "pids.max"}} if both else {}
    trees = {root / "memory": {"memory": "memory.limit_in_bytes"}, root / "pids": {"processes": "pids.max"}}
    return trees if all(os.access(tree / "cgroup.procs", os.W_OK) for tree in trees) else {}


def _make(group: Path, files: Mapping[str, str], limits: Mapping[str, int]) -> None:
    control = group.parent / "cgroup.subtree_control"
    if control.exists():
        control.write_text("+memory +pids")
    group.mkdir()
    for limit, file in files.items():
        (group / file).write_text(str(limits[limit]))
    if not control.exists():
        return
    if (group / "memory.swap.max").exists():
        (group / "memory.swap.max").write_text("0")
    # In version 2 a group can be there and still let nobody in.
    if not succeeds([str(helper_path()), "join-cgroups", str(group / "cgroup.procs"), "--", "/bin/true"]):
        raise OSError(f"{group}: cannot be entered")


def _end(groups: list[Path]) -> None:
    """A group can be removed once the last of its processes is gone, which a killed box takes a moment for."""
    deadline = time.monotonic() + END_S
    for group in groups:
        while group.exists():
            try:
                group.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.001)


def _remove_empty(parent: Path) -> None:
    """Groups of evaluators that were killed."""
    for left in parent.glob(f"{PREFIX}*"):
        if Path("/proc", left.name.removeprefix(PREFIX).partition("-")[0]).exists():
            continue  # its maker lives and may be about to use it
        with contextlib.suppress(OSError):
            left.rmdir()
