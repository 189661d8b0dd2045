"""Columns of code quality that slop-code measures, under the names of SlopCodeBench."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slop_code.errors import ResultError
from slop_code.quality.quality_record import Quality
from slop_code.quality.snapshot_diff import changes_between

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.runs.checkpoint_lines import CheckpointLine


def quality_columns(folder: Path) -> dict[str, Any]:
    """Figures of the implementation, without the submission's own tests; empty where they were not measured."""
    try:
        quality = Quality.load(folder)
    except ResultError:
        return {}
    if quality is None or quality.implementation is None:
        return {}
    figures = quality.implementation
    lines = figures.source_lines
    return {
        "sloc": lines,
        "files": figures.files,
        "functions": figures.functions,
        "cc_max": figures.max_complexity,
        "cc_high_count": figures.high_cc_functions,
        "clone_lines": figures.clone_lines,
        "cloned_pct": 100 * figures.clone_lines / lines if lines else None,
        "verbosity_flagged_pct": 100 * figures.flagged_lines / lines if lines else None,
        "verbosity": figures.verbosity,
        "erosion": figures.erosion,
    }


@dataclass(slots=True)
class SnapshotColumns:
    """Lines that a checkpoint added and removed. Checkpoints are given in their order."""

    last: CheckpointLine | None = None
    snapshot: Path | None = None
    """Of the last checkpoint."""

    def next(self, line: CheckpointLine, snapshot: Path) -> dict[str, Any]:
        """Empty where a snapshot is missing or cannot be counted."""
        follows = self.last is not None and (self.last.problem, self.last.order + 1) == (line.problem, line.order)
        before = self.snapshot if follows else None
        self.last, self.snapshot = line, snapshot
        if before is None and line.order != 1:
            return {}
        changes = changes_between(before, snapshot)
        if changes is None or changes.unread:
            return {}
        return {
            "lines_added": changes.lines_added,
            "lines_removed": changes.lines_removed,
            "delta.churn_ratio": changes.churn,
        }
