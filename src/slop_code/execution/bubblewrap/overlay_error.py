"""Error of an overlay that the kernel refuses to make for set-up, with the file systems of its layers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.execution.cache import CACHE_VARIABLE

if TYPE_CHECKING:
    from slop_code.execution.sandbox import SetupJob

MOUNT_FAILED = "Can't make overlay mount"
"""Part of bwrap's error."""

OVERLAY_ADVICE = f"set {CACHE_VARIABLE} to a folder on a local disk, such as one with ext4 or xfs"


def overlay_error(job: SetupJob, output: str) -> str | None:
    """None for any other error of bwrap. Network file systems and overlays cannot be the upper layer of an overlay."""
    if MOUNT_FAILED not in output:
        return None
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    lower, upper = (f"{path} ({file_system(path, mounts)})" for path in (job.submission, job.scratch))
    return f"the kernel refuses an overlay with {lower} below and its changes in {upper}; {OVERLAY_ADVICE}"


def file_system(path: Path, mounts: str) -> str:
    """The type of the file system that a path is on. `mounts` is the content of `/proc/self/mountinfo`."""
    kind, deepest, real = "unknown", "", os.path.realpath(path)
    for line in mounts.splitlines():
        fields, _, source = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), fields.split(" ")[4])
        # A later mount covers an earlier one on the same folder.
        if Path(real).is_relative_to(point) and len(point) >= len(deepest):
            kind, deepest = source.split(" ")[0], point
    return kind
