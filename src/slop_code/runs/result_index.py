"""Index of a run's results: the facts of each evaluation.json, so that a finished run is planned without reading it."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Self

from pydantic import ValidationError

from slop_code._io import TooLargeError, read_bounded, write_atomic
from slop_code._version import __version__
from slop_code.errors import ResultError
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.result_files.stored_record import SIZE_LIMIT, Stored
from slop_code.runs.checkpoint_lines import (
    CheckpointFacts,
    PassedByTest,
    Regressions,
    count_regressions,
    json_line,
    passed_by_test,
)
from slop_code.runs.folders.run_lock import STATE_DIR
from slop_code.runs.input_signatures import InputSignatures
from slop_code.runs.run_layout import relative_path

if TYPE_CHECKING:
    from pathlib import Path

INDEX_FILE = "index"
FORMAT = 3
"""Increased with every change of the fields of facts and regressions."""

_MADE_BY = f"{__version__} {FORMAT}"
_RECENT = 2

Stamp = str
"""Size, mtime, ctime and inode: a file with another content has another stamp."""


class ComparedResult(Stored):
    earlier: Stamp
    """Stamp of the result that the regressions were counted from."""
    regressions: Regressions


class _IndexEntry(Stored):
    made_by: str
    path: str
    stamp: Stamp
    facts: CheckpointFacts
    compared: ComparedResult | None = None


class ResultIndex:
    """Index of the results in a run folder. A result that changed since it was indexed is read again."""

    def __init__(self, folder: Path | None, entries: dict[str, _IndexEntry]) -> None:
        self.folder = folder
        self.inputs = InputSignatures.load(folder)
        """Digests of the run's snapshots and problems."""
        self._entries = entries
        self._changed = False
        self.unreadable: dict[Path, str] = {}
        """Results that could not be read, each with the reason."""
        self.ignored: set[Path] = set()
        """Files that count as missing, as they are about to be renamed."""
        self._recent: dict[str, tuple[Stamp, PassedByTest]] = {}
        """The last results that were read: a checkpoint is compared with the checkpoint before it."""

    @classmethod
    def load(cls, folder: Path | None) -> Self:
        """If `folder` is None, the index is in memory only."""
        return cls(folder, _read_entries(folder / STATE_DIR / INDEX_FILE) if folder else {})

    def facts(self, path: Path) -> CheckpointFacts | None:
        """None where there is no file. A damaged result has no verdict, with the reason."""
        if path in self.ignored:
            return None
        try:
            stamp = _stamp(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self.unreadable[path] = f"{path}: cannot be read: {error.strerror}"
            return CheckpointFacts.no_verdict(self.unreadable[path])
        entry = self._entries.get(self._key(path))
        if entry and entry.stamp == stamp:
            return entry.facts
        try:
            return self._read(path)[0]
        except ResultError as error:
            self.unreadable[path] = str(error)
            return CheckpointFacts.no_verdict(str(error))

    def is_current(self, path: Path) -> bool:
        """Whether the file is the result that was indexed."""
        entry = self._entries.get(self._key(path))
        return entry is not None and entry.stamp == _stamp_or_none(path)

    def regressions(self, path: Path, earlier_path: Path, since: str) -> Regressions | None:
        """Regressions since the checkpoint named `since`, or None if either file cannot be read."""
        key = self._key(path)
        try:
            stamp, earlier = _stamp(path), _stamp(earlier_path)
            entry = self._entries.get(key)
            known = entry.compared if entry and entry.stamp == stamp else None
            if known and known.earlier == earlier:
                return known.regressions.model_copy(update={"since": since})
            before = self._passed_by_test(earlier_path, earlier)
            regressions = count_regressions(before, self._passed_by_test(path, stamp), since=since)
        except (OSError, ResultError):
            return None
        entry, other = self._entries.get(key), self._entries.get(self._key(earlier_path))
        if entry and other and (entry.stamp, other.stamp) == (stamp, earlier):
            compared = ComparedResult(earlier=earlier, regressions=regressions)
            self._entries[key] = entry.model_copy(update={"compared": compared})
            self._changed = True
        return regressions

    def save(self) -> None:
        """Write the index without entries of files that no longer exist. A link to another folder is not followed."""
        self.inputs.save()
        if self.folder is None or not self._changed or (self.folder / STATE_DIR).is_symlink():
            return
        existing = [key for key in sorted(self._entries) if os.path.lexists(self.folder / key)]
        write_atomic(
            self.folder / STATE_DIR / INDEX_FILE,
            "".join(with_digest(json_line(self._entries[key])) for key in existing),
        )
        self._changed = False

    def _key(self, path: Path) -> str:
        return relative_path(path, self.folder) if self.folder else str(path)

    def _passed_by_test(self, path: Path, stamp: Stamp) -> PassedByTest:
        recent = self._recent.get(self._key(path))
        return recent[1] if recent and recent[0] == stamp else self._read(path)[1]

    def _read(self, path: Path) -> tuple[CheckpointFacts, PassedByTest]:
        """Index the result only if its stamp is the same before and after: then it is the stamp of what was read."""
        key = self._key(path)
        self._changed |= self._entries.pop(key, None) is not None
        self._recent.pop(key, None)
        before = _stamp_or_none(path)
        results = CorrectnessResults.load(path)  # those of other programs are never indexed as ours
        facts, passed = CheckpointFacts.of(results), passed_by_test(results)
        if before is not None and before == _stamp_or_none(path):
            # Checkpoints are read in their order: the last result read is the result to compare with.
            last = next(reversed(self._recent.values()), None)
            compared = (
                ComparedResult(earlier=last[0], regressions=count_regressions(last[1], passed, since=""))
                if last
                else None
            )
            self._entries[key] = _IndexEntry(made_by=_MADE_BY, path=key, stamp=before, facts=facts, compared=compared)
            self._changed = True
            while len(self._recent) >= _RECENT:
                del self._recent[next(iter(self._recent))]
            self._recent[key] = (before, passed)
        return facts, passed


def _stamp(path: Path) -> Stamp:
    status = os.lstat(path)
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def _stamp_or_none(path: Path) -> Stamp | None:
    try:
        return _stamp(path)
    except OSError:
        return None


def with_digest(line: str) -> str:
    """The line with its digest in front: a damaged or edited line is ignored, and its result is read again."""
    return f"{_digest(line.encode().rstrip()).decode()} {line}"


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()


def _read_entries(path: Path) -> dict[str, _IndexEntry]:
    """Damaged lines, and those of another version, are ignored."""
    try:
        raw = read_bounded(path, SIZE_LIMIT)
    except (OSError, TooLargeError):
        return {}
    entries = {}
    for line in raw.splitlines():
        digest, _, text = line.partition(b" ")
        if digest != _digest(text):
            continue
        try:
            entry = _IndexEntry.model_validate_json(text, strict=True)
        except ValidationError:
            continue
        if entry.made_by == _MADE_BY:
            entries[entry.path] = entry
    return entries
