"""Measurement of many snapshots, several at a time; each record is written to the folder of its checkpoint."""

from __future__ import annotations

import shlex
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code._safe_text import decoded_name
from slop_code.errors import SlopCodeError, UsageError
from slop_code.execution.cancellation import EvaluationCancelledError
from slop_code.quality.quality_record import QualityRecord, replaceable_record
from slop_code.runs.folders.folder_kind import FolderKind, kind_of
from slop_code.runs.folders.result_folders import checkpoint_folders
from slop_code.runs.run_layout import LAYOUT, named_runs, stored_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from slop_code.quality.measure import ScbCheck


@dataclass(frozen=True, slots=True)
class SnapshotToMeasure:
    group: str
    """Names of its run and problem, as far as they are known."""

    checkpoint: str
    snapshot: Path
    output: Path
    """Folder of `quality.json`."""

    @property
    def label(self) -> str:
        return "/".join(part for part in (self.group, self.checkpoint) if part)


@dataclass(frozen=True, slots=True)
class MeasuredSnapshot:
    target: SnapshotToMeasure
    quality: QualityRecord | None
    """It is None if there is no measurement at all."""

    error: str | None = None

    @property
    def reason(self) -> str | None:
        """Why it has not all figures that it should have; None where it has."""
        if self.quality is None:
            return self.error
        return "; ".join(f"{part}: {reason}" for part, reason in self.quality.failures.items()) or None


def find_snapshots(folders: Sequence[Path]) -> list[SnapshotToMeasure]:
    """The snapshots of runs, of problems in runs, or of checkpoints; no problem has to be known."""
    snapshots = [snapshot for name, folder in named_runs(folders) for snapshot in _snapshots_in(name, folder)]
    if not snapshots:
        folder = folders[0]
        runs = f"; for a folder of runs: `slop-code metrics {shlex.quote(str(folder))}/*/`"
        step = runs if kind_of(folder) is FolderKind.RUNS else ""
        raise UsageError(f"{folder}: there is no snapshot; expected {LAYOUT}{step}")
    return snapshots


def _snapshots_in(run: str, folder: Path) -> Iterator[SnapshotToMeasure]:
    """A link out of the run is not followed: only the snapshots of a mirrored tree are read elsewhere."""
    root = folder.resolve()
    for output in checkpoint_folders(folder):
        snapshot = stored_snapshot(output)
        paths = [output.resolve(), snapshot.resolve()]
        if snapshot.parent.resolve() != paths[0]:  # that of a mirrored tree
            paths.pop()
        if all(path.is_relative_to(root) for path in paths):
            *group, checkpoint = map(decoded_name, (run, *output.relative_to(folder).parts))
            yield SnapshotToMeasure("/".join(group), checkpoint, snapshot, output)


def measure_snapshots(
    scb_check: ScbCheck, targets: Sequence[SnapshotToMeasure], workers: int
) -> Iterator[MeasuredSnapshot]:
    """In the order in which they end. One that cannot be measured does not stop the others."""
    with scb_check.sandbox.cache.shared_lock(), ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(copy_context().run, _measure, scb_check, target) for target in targets]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _measure(scb_check: ScbCheck, target: SnapshotToMeasure) -> MeasuredSnapshot:
    try:
        earlier = replaceable_record(target.output)
        quality = scb_check.measure(target.snapshot)
        if not quality.is_worse_than(earlier):
            quality.save(target.output)
    except EvaluationCancelledError:
        raise
    except SlopCodeError as error:
        return MeasuredSnapshot(target, None, str(error))
    except OSError as error:
        return MeasuredSnapshot(target, None, f"{error.filename or target.output}: {error.strerror}")
    return MeasuredSnapshot(target, quality)
