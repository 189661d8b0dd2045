"""Changes between two snapshots: files, lines and churn, and bounded unified diffs. Nothing of a snapshot is run."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from slop_code._safe_text import decoded_name
from slop_code.errors import SlopCodeError
from slop_code.execution.submission import RESERVED, walk_tree
from slop_code.quality.line_diff import (
    Block,
    StepBudget,
    matching_blocks,
    outer_blocks,
    split_lines,
    unified_lines,
)
from slop_code.quality.sources import NOT_WRITTEN_BY_AGENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from slop_code.execution.submission import TreeEntry
    from slop_code.runs.checkpoint_lines import CheckpointLine

MAX_FILES = 5_000
"""Files, folders and links outside of the folders of packages and tools; a snapshot with more is not measured."""

MAX_FILE_BYTES = 1 << 20
MAX_FILE_LINES = 50_000
MAX_SNAPSHOT_BYTES = 16 << 20
MAX_SNAPSHOT_LINES = 400_000
"""Bytes and lines that are read of one snapshot; of files beyond them, in the order of their paths, only names and
sizes count."""

MAX_FILE_STEPS = 500_000
MAX_STEPS = 1_000_000
"""Steps of the comparison of two versions of a file, and of all files of two snapshots."""

MAX_HISTORY_STEPS = 20_000_000
"""Steps of all comparisons of a report or of an exported run, some 20 seconds; beyond them, files are compared
roughly."""

FileChangeKind = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A regular file of a snapshot."""

    size: int
    is_binary: bool = False
    data: bytes | None = field(default=None, repr=False)
    """None where the file is not read: too large, or not readable."""

    lines: int = 0
    """None of a binary file, nor of one that is not read."""

    @property
    def is_unread(self) -> bool:
        return not self.is_binary and self.data is None


SnapshotFiles = dict[bytes, SnapshotFile]
"""By path, relative to the snapshot."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that is not the same in both snapshots. A renamed file is one that was removed and one that was added."""

    path: str
    kind: FileChangeKind
    lines_added: int = 0
    lines_removed: int = 0
    is_binary: bool = False
    is_unread: bool = False
    is_rough: bool = False
    """Whether the comparison took too many steps, so that all lines between the first and the last difference count
    as replaced."""

    versions: tuple[SnapshotFile | None, SnapshotFile | None] = field(default=(None, None), repr=False)
    """Before and after. Lines take many times the memory of the text, so they are split whenever they are needed."""

    blocks: tuple[Block, ...] = field(default=(), repr=False)

    def diff(self) -> Iterator[str]:
        """Hunks of a unified diff; nothing of a binary file or one that is not read."""
        before, after = map(_lines_of, self.versions)
        return unified_lines(before, after, self.blocks)


@dataclass(frozen=True, slots=True)
class SnapshotChanges:
    """Changes from a snapshot to a later one of the same submission."""

    files: tuple[FileChange, ...]
    """Sorted by path."""

    lines_before: int
    unread: int
    """Text files that are not read in one of the snapshots. Their lines count nowhere: the figures are incomplete."""

    @property
    def lines_added(self) -> int:
        return sum(change.lines_added for change in self.files)

    @property
    def lines_removed(self) -> int:
        return sum(change.lines_removed for change in self.files)

    @property
    def churn(self) -> float | None:
        """Lines added and removed, as a share of the lines before; None where there were none."""
        return (self.lines_added + self.lines_removed) / self.lines_before if self.lines_before else None

    @property
    def rough(self) -> int:
        """Files of which more lines may be counted as changed than are."""
        return sum(change.is_rough for change in self.files)


@dataclass(frozen=True, slots=True)
class CheckpointChanges:
    """The snapshot of a checkpoint and its changes, each None if a snapshot is not recorded."""

    files: SnapshotFiles | None = None
    changes: SnapshotChanges | None = None
    """Since the checkpoint before; for the first one, everything is added."""

    broke: SnapshotChanges | None = None
    """Since the checkpoint at which the tests that broke here passed; None where none broke."""


@dataclass(slots=True)
class SnapshotHistory:
    """Snapshots that the next checkpoint is compared with. Checkpoints are given in their order; each is read once."""

    steps: StepBudget = field(default_factory=lambda: StepBudget(MAX_HISTORY_STEPS))
    last: CheckpointLine | None = None
    files: SnapshotFiles | None = None
    """Of the last checkpoint."""

    judged: SnapshotFiles | None = None
    """Of the last checkpoint with a verdict, with which tests are compared."""

    def add(self, line: CheckpointLine, snapshot: Path | None) -> CheckpointChanges:
        if self.last is None or self.last.problem != line.problem:
            self.last, self.files, self.judged = None, None, None
        before, judged = self._before(line), self.judged
        files = read_snapshot(snapshot) if snapshot is not None else None
        self.last, self.files = line, files
        if line.state == "evaluated":
            self.judged = files
        if files is None:
            return CheckpointChanges()
        changes = None if before is None else self._compare(before, files)
        if judged is None or line.regressions is None or not line.regressions.introduced:
            return CheckpointChanges(files, changes)
        return CheckpointChanges(files, changes, changes if before is judged else self._compare(judged, files))

    def _before(self, line: CheckpointLine) -> SnapshotFiles | None:
        """Of the checkpoint directly before this one. Before the first one there is nothing."""
        if line.order == 1:
            return {}
        return self.files if self.last is not None and self.last.order == line.order - 1 else None

    def _compare(self, before: SnapshotFiles, after: SnapshotFiles) -> SnapshotChanges:
        with self.steps.part(MAX_STEPS) as part:
            return compare_files(before, after, part)


def read_snapshot(folder: Path) -> SnapshotFiles | None:
    """The regular files outside of the folders of packages and tools.

    None for a snapshot that is missing, cannot be read or is beyond the limits.
    A link is never followed, not even where the snapshot itself is one: it may lead out of the run.
    """
    if os.path.islink(folder):
        return None
    files: SnapshotFiles = {}
    left, lines_left = MAX_SNAPSHOT_BYTES, MAX_SNAPSHOT_LINES
    try:
        walk = walk_tree(folder, RESERVED, frozenset(map(os.fsencode, NOT_WRITTEN_BY_AGENTS)))
        for count, entry in enumerate(walk, start=1):
            if count > MAX_FILES:
                return None
            if entry.kind == stat.S_IFREG:
                limit = min(left, MAX_FILE_BYTES)
                files[entry.path] = file = _read_file(entry, limit, min(lines_left, MAX_FILE_LINES))
                left -= entry.size if entry.size <= limit else 0
                lines_left -= file.lines
    except (SlopCodeError, OSError):
        return None
    return files


def _read_file(entry: TreeEntry, limit: int, max_lines: int) -> SnapshotFile:
    if entry.descriptor is None:
        return SnapshotFile(entry.info.st_size)
    is_binary = entry.is_binary()
    data = b"".join(entry.content()) if entry.size <= limit else None
    lines = 0 if data is None or is_binary else data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
    return SnapshotFile(entry.size, is_binary, data, lines) if lines <= max_lines else SnapshotFile(entry.size)


def compare_files(
    before: Mapping[bytes, SnapshotFile], after: Mapping[bytes, SnapshotFile], budget: StepBudget
) -> SnapshotChanges:
    """Files that are not read count as changed where their sizes differ."""
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    return SnapshotChanges(
        tuple(_change(decoded_name(os.fsdecode(path)), before.get(path), after.get(path), budget) for path in paths),
        lines_before=sum(file.lines for file in before.values()),
        unread=len(unread_paths(before) | unread_paths(after)),
    )


def unread_paths(files: Mapping[bytes, SnapshotFile]) -> set[bytes]:
    return {path for path, file in files.items() if file.is_unread}


def _change(path: str, old: SnapshotFile | None, new: SnapshotFile | None, budget: StepBudget) -> FileChange:
    kind: FileChangeKind = "added" if old is None else "removed" if new is None else "changed"
    present = [file for file in (old, new) if file is not None]
    if any(file.is_unread for file in present):
        return FileChange(path, kind, is_unread=True)
    before, after = _lines_of(old), _lines_of(new)
    with budget.part(MAX_FILE_STEPS) as part:
        exact = matching_blocks(before, after, part)
    blocks = outer_blocks(before, after) if exact is None else exact
    kept = sum(block.size for block in blocks)
    return FileChange(
        path,
        kind,
        lines_added=len(after) - kept,
        lines_removed=len(before) - kept,
        is_binary=any(file.is_binary for file in present),
        is_rough=exact is None,
        versions=(old, new),
        blocks=tuple(blocks),
    )


def _lines_of(file: SnapshotFile | None) -> list[bytes]:
    return split_lines(file.data) if file and file.data and not file.is_binary else []
