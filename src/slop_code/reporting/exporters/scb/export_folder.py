"""Export of runs into a new folder: a run folder that the tools of SlopCodeBench read."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slop_code._io import check_new_folder, new_folder, read_or_none, write_new
from slop_code.errors import ResultError, UsageError
from slop_code.evaluation.problem.problem_lookup import ENVIRONMENT
from slop_code.evaluation.report import RESULT_FILE
from slop_code.quality.quality_record import quality_of
from slop_code.quality.snapshot_diff import SnapshotHistory
from slop_code.reporting.evaluated_problem import EvaluatedProblems
from slop_code.reporting.exporters.scb.carried_values import (
    carried_columns,
    carried_evaluation,
    carried_quality,
)
from slop_code.reporting.exporters.scb.exported_columns import change_columns, exported_columns, quality_columns
from slop_code.reporting.exporters.scb.exported_evaluation import Counts, Versions, evaluation_document
from slop_code.reporting.exporters.scb.exported_report import evaluation_files
from slop_code.reporting.exporters.scb.exported_summary import result_document
from slop_code.runs.run_layout import LINES_FILE, SNAPSHOT, stored_snapshot
from slop_code.runs.scb.agent_facts import (
    CONFIG_FILE,
    INFERENCE_FILE,
    MAX_FILE_BYTES,
    RESULT_SUMMARY_FILE,
    read_agent_identity,
)
from slop_code.runs.scb.catalog import CATALOG_FILE
from slop_code.runs.scb.load_result import is_scb
from slop_code.runs.scb.scb_report import EVALUATION_DIR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slop_code.reporting.exporters import Skips
    from slop_code.reporting.exporters.scb.carried_values import ColumnsByCheckpoint
    from slop_code.reporting.exporters.scb.exported_columns import Columns
    from slop_code.runs.read_results import RunResults, StoredCheckpoint

RUN_FILES = (CONFIG_FILE, ENVIRONMENT, CATALOG_FILE)
"""Files of a run that are copied, if they are regular files of at most MAX_FILE_BYTES."""
SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
RESERVED_NAMES = {*RUN_FILES, RESULT_FILE, LINES_FILE, RESULT_SUMMARY_FILE, SNAPSHOT}


def export_folder(runs: Sequence[RunResults], target: Path, skips: Skips) -> None:
    """Writes one run to `target`, several to a folder in it for each. It appears as a whole or not at all."""
    check_target(target, runs)
    with new_folder(target) as folder:
        for run in runs:
            _RunExport(run, folder if len(runs) == 1 else folder / folder_name(run.name), skips).write()


def check_target(target: Path, runs: Sequence[RunResults]) -> None:
    """An export replaces nothing: its folder is new or empty, and is in no run."""
    real = target.resolve()
    if SNAPSHOT in real.parts:
        raise UsageError(f"{target}: lies in a snapshot, where nothing is ever written; give another folder with -o")
    if inside := [run.folder for run in runs if real.is_relative_to(run.folder.resolve())]:
        raise UsageError(f"{target}: lies in the run {inside[0]}; give a folder outside of it with -o")
    check_new_folder(target, "-o")


def folder_name(name: str) -> str:
    """The name, or a similar one where it could not be the name of a folder here. Different names stay different."""
    if SAFE_NAME.fullmatch(name) and name not in RESERVED_NAMES:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{re.sub('[^A-Za-z0-9]+', '_', name)[:60]}-{digest}"


@dataclass(frozen=True, slots=True)
class _RunExport:
    run: RunResults
    folder: Path
    skips: Skips
    history: SnapshotHistory = field(default_factory=SnapshotHistory)
    problems: EvaluatedProblems = field(default_factory=EvaluatedProblems)
    sources: dict[Path, ColumnsByCheckpoint] = field(default_factory=dict)
    """Runs that the results are of, with columns of SlopCodeBench: the run itself, or that of a mirrored tree."""

    def write(self) -> None:
        rows = [self._write_checkpoint(entry) for entry in self.run.entries()]
        for row, following in zip(rows, [*rows[1:], {}], strict=True):
            if row["is_last"] is None:
                row["is_last"] = row["problem"] != following.get("problem")
        _write(self.folder / LINES_FILE, "".join(f"{json.dumps(row, allow_nan=False)}\n" for row in rows))
        source = next(iter(self.sources), self.run.folder)
        agent, quality = read_agent_identity(source), carried_quality(source)
        _write_json(self.folder / RESULT_SUMMARY_FILE, result_document(rows, self.skips, agent, quality))
        for name in RUN_FILES:
            _copy(source / name, self.folder / name)

    def _write_checkpoint(self, entry: StoredCheckpoint) -> Columns:
        line, skips = entry.line, self.skips
        path = f"{folder_name(line.problem)}/{folder_name(line.checkpoint)}"
        folder, stored = self.folder / path, entry.folder or self.run.folder / path
        source = stored_snapshot(stored).parent
        try:
            folder.mkdir(parents=True)
        except FileExistsError as error:
            raise ResultError(f"{line.label}: exported twice; keep one of its results") from error
        counts, versions = Counts.of(entry, skips), self._versions(entry)
        values = carried_evaluation(entry.folder) if entry.folder and entry.results and is_scb(entry.results) else {}
        _write_json(folder / RESULT_FILE, evaluation_document(entry, counts, skips, versions, values))
        for name, data in evaluation_files(entry).items():
            _write(folder / EVALUATION_DIR / name, data)
        _copy(source / INFERENCE_FILE, folder / INFERENCE_FILE)
        identity: Columns = {"version": versions.problem, "idx": line.order, "is_first": line.order == 1}
        checkpoints = entry.results.provenance.checkpoints if entry.results else []
        if line.checkpoint in checkpoints:
            identity["is_last"] = line.checkpoint == checkpoints[-1]
        run = self.run.folder if source == stored else source.parent.parent
        carried = self._carried(run).get((line.problem, line.checkpoint), {})
        snapshots = None if "lines_added" in carried else self.history.add(line, stored_snapshot(stored))
        measured = quality_columns(quality_of(entry, self.run.unreadable).record)
        changes = change_columns(snapshots.changes if snapshots else None)
        known = {**measured, **changes, **carried, "path": path}
        return exported_columns(entry, counts, skips, identity, known)

    def _carried(self, run: Path) -> ColumnsByCheckpoint:
        if run not in self.sources:
            self.sources[run] = carried_columns(run)
        return self.sources[run]

    def _versions(self, entry: StoredCheckpoint) -> Versions:
        """From the problem of the result, if its configuration is still the same."""
        if entry.folder is None or entry.results is None:
            return Versions()
        config = self.problems.of(entry.results, entry.folder, self.run.folder).config
        if config is None:
            return Versions()
        return Versions(_whole(config.version), _whole(config.checkpoints[entry.results.checkpoint_name].version))


def _whole(version: str | None) -> int:
    return int(version) if version and re.fullmatch("[0-9]{1,9}", version) else 0


def _copy(source: Path, target: Path) -> None:
    data = read_or_none(source, MAX_FILE_BYTES)
    if data is not None:
        _write(target, data)


def _write_json(path: Path, document: Any) -> None:
    _write(path, json.dumps(document, indent=2, allow_nan=False) + "\n")


def _write(path: Path, data: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_new(path, data.encode("ascii") if isinstance(data, str) else data)
