"""Completeness of snapshots and runs that somebody may still write: done files, and stamps that no longer change."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.execution.submission import MAX_ENTRIES, RESERVED, TreeLimitError, walk_tree
from slop_code.runs.scb.agent_facts import INFERENCE_FILE, RESULT_SUMMARY_FILE

if TYPE_CHECKING:
    from pathlib import Path

SNAPSHOT_DONE_FILES = (INFERENCE_FILE, "snapshot.done")
"""Either of them beside a snapshot says that the agent's work on the checkpoint is done."""

RUN_DONE_FILES = (RESULT_SUMMARY_FILE, "run.done")
"""Either of them in a run folder says that the agent's run has ended."""

NO_DONE_FILE = f"the snapshot is not complete: there is neither {' nor '.join(SNAPSHOT_DONE_FILES)} beside it"
CHANGING = "the snapshot is not complete: it still changes, or cannot be read to its end"
NOT_SETTLED = "the snapshot is not complete: it changed a moment ago"


@dataclass(frozen=True, slots=True)
class Stamps:
    """A snapshot and its done files at one moment. Equal stamps mean equal content."""

    tree: str | None
    """Stamp of the snapshot, or None if it changed while it was read or cannot be read."""

    done_files: str | None
    """Stamp of the done files, or None if there is none."""

    @classmethod
    def of(cls, snapshot: Path) -> Stamps:
        """The done files are read first: what was written before them is in the tree's stamp."""
        stamps = [_file_stamp(snapshot.parent / name) for name in SNAPSHOT_DONE_FILES]
        return cls(done_files=str(stamps) if any(stamps) else None, tree=tree_stamp(snapshot))


@dataclass(frozen=True, slots=True)
class WatchedSnapshot:
    stamps: Stamps
    since: float
    """The first time at which it had these stamps."""

    @classmethod
    def next(cls, before: WatchedSnapshot | None, stamps: Stamps, now: float) -> WatchedSnapshot:
        return before if before is not None and before.stamps == stamps else cls(stamps, now)

    def incomplete_reason(self, now: float, settle_s: float) -> str | None:
        """Why the snapshot is not complete; None where it is."""
        if self.stamps.done_files is None:
            return NO_DONE_FILE
        if self.stamps.tree is None:
            return CHANGING
        return None if now - self.since >= settle_s else NOT_SETTLED


def has_run_ended(folder: Path) -> bool:
    return any(_file_stamp(folder / name) for name in RUN_DONE_FILES)


def tree_stamp(snapshot: Path) -> str | None:
    """Digest over names, modes, sizes, times and inodes, or None if the tree cannot be read to its end.

    Contents are not read.
    """
    digest = hashlib.sha256()
    try:
        digest.update(_stamp(os.stat(snapshot)))
        for number, entry in enumerate(walk_tree(snapshot, RESERVED)):
            digest.update(len(entry.path).to_bytes(8, "big") + entry.path + _stamp(entry.info))
            if number > MAX_ENTRIES:  # no more of it is ever evaluated
                break
    except TreeLimitError as error:  # a verdict: the evaluation names it
        digest.update(error.fact.encode())
    except (InfrastructureError, OSError):
        return None
    return digest.hexdigest()


def _file_stamp(path: Path) -> bytes | None:
    """None for anything but a regular file, such as a link."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return _stamp(info) if stat.S_ISREG(info.st_mode) else None


def _stamp(info: os.stat_result) -> bytes:
    return b"%o %d %d %d %d\0" % (info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
