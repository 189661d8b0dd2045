"""User of the host for the boxes of an evaluator that runs as root: a user id that nobody else has."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from slop_code.errors import InfrastructureError
from slop_code.execution.bubblewrap.bwrap_binary import CONTAINED, NAMESPACES, PROBE_S, bwrap
from slop_code.execution.bubblewrap.cgroups import can_enter_groups
from slop_code.execution.bubblewrap.closed_folders import can_map, open_paths
from slop_code.execution.bubblewrap.host_root import is_host_root
from slop_code.execution.bubblewrap.probe_results import ProbeResults
from slop_code.execution.bubblewrap.system_mounts import system_arguments
from slop_code.execution.helper import reaped
from slop_code.execution.process import capture

FIRST_UID = 1_900_000_000
"""Above the ids of containers, and unassigned in systemd's table of users. An evaluator adds its process id."""

PROBE_SCRIPT = "echo changed > /probe/file && mkdir /probe/folder && echo made > /kept/made"


def box_user(folder: Path) -> int | None:
    """None: boxes run as the user of the evaluator. `folder`: of the cache, in which the boxes write."""
    if os.geteuid() != 0 or not can_map(folder):
        return None
    user = FIRST_UID + os.getpid()
    return user if can_enter_groups(user) and _can_make_boxes(user, os.stat(folder).st_dev, folder) else None


def ids_in_force(user: int | None) -> str:
    """Words of the result: whose user of the host judge and subject share."""
    return "unprivileged" if user is not None else "root" if is_host_root() else "evaluator"


_probed: ProbeResults[bool] = ProbeResults(bool)


def _can_make_boxes(user: int, device: int, folder: Path) -> bool:
    """The kernel may forbid user namespaces to all but root, or layers of mounts with other owners."""
    return _probed.get((user, device), lambda: _probe(user, folder))


def _probe(user: int, parent: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="slop-code-probe-", dir=parent) as folder:
        layer, kept = Path(folder) / "layer", Path(folder) / "kept"
        layer.mkdir()
        kept.mkdir()
        (layer / "file").touch(mode=0o600)
        box = [
            bwrap(), "--unshare-user", "--uid", "1000", "--gid", "1000", *NAMESPACES, *CONTAINED, *system_arguments(),
            "--proc", "/proc", "--dev", "/dev", "--bind", str(kept), "/kept",
            "--overlay-src", str(layer), "--tmp-overlay", "/probe", "--", "/bin/sh", "-c", PROBE_SCRIPT,
        ]  # fmt: skip
        try:
            done = capture(reaped(open_paths(box, user)), PROBE_S)
            return done.exit_code == 0 and (kept / "made").stat().st_uid == 0
        except (InfrastructureError, OSError):
            return False
