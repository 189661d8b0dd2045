"""Control groups: hard limits of the kernel, above the limits that `slopbox serve` enforces everywhere.

Memory limits that hold everywhere, with control groups or without, are enforced by `kill_over_limits` in
execution/helper/spawner.c.

The memory limit of a group is `memory` plus twice `disk`, since the files of a box are in memory, too. Root may make
control groups anywhere, others in a group of version 2 that was delegated to them, or in a scope of their systemd.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.execution.bubblewrap.delegation import LEAF, leave_to_leaf, own_delegated_group
from slop_code.execution.bubblewrap.group_locks import new_group, remove_abandoned_groups
from slop_code.execution.bubblewrap.host_root import is_host_root
from slop_code.execution.bubblewrap.root_groups import group_of_boxes
from slop_code.execution.bubblewrap.user_scope import is_own_scope
from slop_code.execution.helper import helper_path
from slop_code.execution.process import succeeds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

logger = logging.getLogger(__name__)

ROOT = Path("/sys/fs/cgroup")
PREFIX = "slop-code-"
OOM_KILL = "oom_kill"
EVENTS = (
    ("memory.events", OOM_KILL),
    ("memory.oom_control", OOM_KILL),
    ("pids.events", "max"),
    ("cpu.stat", "nr_throttled"),
)
"""Files that count how often a limit struck, in version 2 and in version 1."""

MEMORY_AND_SWAP = "memory.memsw.limit_in_bytes"
"""In version 1, where the kernel counts swap; version 2 has `memory.swap.max`."""

SWAP_MARGIN = 16 << 20
"""Room above the memory limit, which so strikes first: Linux 6.18 counts refusals of that one only."""

END_S = 30.0
CPU_PERIOD_US = 100_000
MIN_QUOTA_US = 1_000
"""The kernel takes no less."""


def available(root: Path = ROOT) -> bool:
    """Whether control groups can be made; some are made to find out."""
    with control_groups(1 << 30, 100, root) as groups:
        return bool(groups)


@contextlib.contextmanager
def control_groups(
    memory: int, processes: int, root: Path = ROOT, *, cpus: float | None = None, user: int | None = None
) -> Iterator[list[Path]]:
    """Folders of new groups with these limits, which exist during the block; none where they cannot be made.

    Where the kernel limits no CPU time, the groups have the other limits: `cpu_limit` tells. `user`: of the host, whose
    processes may enter the groups.
    """
    limits = {"memory": memory, "processes": processes}
    made: list[Path] = []
    with contextlib.ExitStack() as locks:
        try:
            try:
                for parent, files in _parents(root, user).items():
                    made.append(_locked_group(parent, locks))
                    _set_up(made[-1], files, limits)
                if made and cpus is not None:
                    _limit_cpus(made, root, cpus, locks)
                if user is not None:
                    for group in made:
                        os.chown(group / "cgroup.procs", user, user)
            except OSError:
                _end(made)
                made.clear()
            yield made
            _log_events(made)
        finally:
            _end(made)


def authority_of(groups: Sequence[Path]) -> str:
    """By what right these groups were made: `root`, `delegation`, or a `scope` that the evaluator asked for."""
    if is_host_root():
        return "root"
    return "scope" if is_own_scope(groups[0].parent) else "delegation"


def group_parents() -> list[Path]:
    """Folders in which groups are made; none where they cannot be made."""
    parents = list(_parents(ROOT))
    return [*dict.fromkeys([*parents, *_cpu_parents(ROOT)])] if parents else []


def can_limit_cpus() -> bool:
    return bool(_parents(ROOT) and _cpu_parents(ROOT))


def cpu_limit(groups: Sequence[Path]) -> float | None:
    """The share of CPU time that the kernel allows these groups, or None if it limits none."""
    for group in groups:
        with contextlib.suppress(OSError, ValueError):  # without a limit, the quota is a word
            if (group / "cpu.max").exists():
                quota, period = (group / "cpu.max").read_text().split()
            else:
                quota, period = ((group / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
            return int(quota) / int(period)
    return None


def _parents(root: Path, user: int | None = None) -> dict[Path, dict[str, str]]:
    """Parent folders of new groups, with the file of each limit: a single tree in version 2, two in version 1."""
    if _is_unified(root):
        parent = _root_parent(root, user) if os.geteuid() == 0 else own_delegated_group(root)
        if parent is None:
            return {}
        have = (parent / "cgroup.controllers").read_text().split()
        both = {"memory", "pids"} <= set(have) and os.access(parent / "cgroup.subtree_control", os.W_OK)
        return {parent: {"memory": "memory.max", "processes": "pids.max"}} if both else {}
    if os.geteuid() != 0:
        return {}
    trees = {root / "memory": {"memory": "memory.limit_in_bytes"}, root / "pids": {"processes": "pids.max"}}
    return trees if all(os.access(tree / "cgroup.procs", os.W_OK) for tree in trees) else {}


def _root_parent(root: Path, user: int | None) -> Path | None:
    return root if user is None else group_of_boxes(root, user)


def can_enter_groups(user: int, root: Path = ROOT) -> bool:
    """True if boxes of this user of the host can enter the groups that root makes, and where root makes none."""
    return not _is_unified(root) or not _parents(root) or group_of_boxes(root, user) is not None


def begin_in_group(command: Sequence[str], user: int | None, root: Path = ROOT) -> list[str]:
    """The command, in the group in which boxes of this user of the host begin, where there is one."""
    group = group_of_boxes(root, user) if user is not None and _is_unified(root) and _parents(root) else None
    if group is None:
        return list(command)
    return [str(helper_path()), "join-cgroups", str(group / LEAF / "cgroup.procs"), "--", *command]


def _is_unified(root: Path) -> bool:
    return (root / "cgroup.controllers").exists()


def _cpu_parents(root: Path) -> list[Path]:
    """Parent folders of groups that limit CPU time; in version 2 that of all groups."""
    if not _is_unified(root):
        return [root / "cpu"] if os.access(root / "cpu/cgroup.procs", os.W_OK) else []
    return [parent for parent in _parents(root) if "cpu" in (parent / "cgroup.controllers").read_text().split()]


def _limit_cpus(made: list[Path], root: Path, cpus: float, locks: contextlib.ExitStack) -> None:
    """The kernel may refuse a limit above that of an outer group; the outer limit applies then."""
    quota = max(MIN_QUOTA_US, round(min(cpus, os.cpu_count() or 1) * CPU_PERIOD_US))
    with contextlib.suppress(OSError):
        for parent in _cpu_parents(root):
            if _is_unified(root):
                (made[0].parent / "cgroup.subtree_control").write_text("+cpu")
                (made[0] / "cpu.max").write_text(f"{quota} {CPU_PERIOD_US}")
            else:
                made.append(_locked_group(parent, locks))
                (made[-1] / "cpu.cfs_period_us").write_text(str(CPU_PERIOD_US))
                (made[-1] / "cpu.cfs_quota_us").write_text(str(quota))


def _locked_group(parent: Path, locks: contextlib.ExitStack) -> Path:
    remove_abandoned_groups(parent, PREFIX)
    group, lock = new_group(parent, f"{PREFIX}{os.getpid()}-")
    locks.callback(os.close, lock)
    return group


def _set_up(group: Path, files: Mapping[str, str], limits: Mapping[str, int]) -> None:
    control = group.parent / "cgroup.subtree_control"
    if control.exists():
        if os.geteuid() != 0:
            leave_to_leaf(group.parent)
        control.write_text("+memory +pids")
    for limit, file in files.items():
        (group / file).write_text(str(limits[limit]))
    if (group / MEMORY_AND_SWAP).exists():
        (group / MEMORY_AND_SWAP).write_text(str(limits["memory"] + SWAP_MARGIN))
    if not control.exists():
        return
    if (group / "memory.swap.max").exists():
        (group / "memory.swap.max").write_text("0")
    # In version 2 a group can exist and still refuse every process.
    if not succeeds([str(helper_path()), "join-cgroups", str(group / "cgroup.procs"), "--", "/bin/true"]):
        raise OSError(f"{group}: cannot be entered")


def _log_events(groups: list[Path]) -> None:
    """Log the limits that struck, as the kernel counts them."""
    for file, line in _events(groups):
        logger.info("limit struck, as in %s of the control group: %s", file, line)


def reached_memory_limit(groups: list[Path]) -> bool:
    """The kernel ended a process of a group that had reached its own limit.

    It also counts the processes that it ended because the machine, or a group above, had no memory left.
    """
    return any(line.startswith(OOM_KILL) and _reached_limit(group) for group in groups for _, line in _events([group]))


def _reached_limit(group: Path) -> bool:
    counts = [*_lines(group / "memory.events"), *(f"oom {count}" for count in _lines(group / "memory.failcnt"))]
    return any(re.fullmatch(r"oom [1-9]\d*", count) for count in counts)


def _events(groups: list[Path]) -> Iterator[tuple[str, str]]:
    for group, (file, event) in itertools.product(groups, EVENTS):
        lines = _lines(group / file)
        yield from ((file, line) for line in lines if line.startswith(f"{event} ") and not line.endswith(" 0"))


def _lines(file: Path) -> list[str]:
    """Each version of control groups has files that the other one lacks."""
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _end(groups: list[Path]) -> None:
    """A group can be removed once its last process is gone, which takes a killed box a moment."""
    deadline = time.monotonic() + END_S
    for group in groups:
        while group.exists():
            try:
                group.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.001)
