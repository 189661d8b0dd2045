"""Guard of the files of other programs that an evaluation of runs would replace: results and summaries."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from slop_code._io import open_regular
from slop_code.evaluation.result_files.foreign_files import can_be_replaced, is_foreign_result, parse_json
from slop_code.evaluation.result_files.stored_record import SIZE_LIMIT
from slop_code.execution.trees.file_signatures import SignatureCache
from slop_code.runs.discover import UNNAMED_RUN
from slop_code.runs.folders.result_folders import checkpoint_folders, result_files
from slop_code.runs.jobs.plan import part_of_runs
from slop_code.runs.run_layout import LINES_FILE, RESULT_FILE, SUMMARY_FILE
from slop_code.runs.scb.scb_lines import are_own_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.result_index import ResultIndex
    from slop_code.runs.run_evaluation import RunSettings

MAX_LINE_LENGTH = 1 << 20
"""Bytes of a line of checkpoint_results.jsonl that are read at once; a longer one tells nothing."""

_own_files = SignatureCache[bool | None]()
"""True for files that slop-code wrote; None where the content does not tell."""


def foreign_files(
    runs: Sequence[DiscoveredRun], settings: RunSettings, indexes: Mapping[str, ResultIndex]
) -> list[Path]:
    """Files of other programs that the evaluation of these runs would replace."""
    submissions, _ = part_of_runs(runs, settings.shard)
    foreign = []
    for item in submissions:
        index = indexes.get(item.run) or indexes[UNNAMED_RUN]
        path = item.output / RESULT_FILE if item.output else None
        if path and not index.is_current(path) and is_foreign_result(path):
            foreign.append(path)
    folders = [run.folder for run in runs if run.folder and writes_summary(run, settings)]
    if (common := common_folder(runs, settings)) is not None:
        folders.append(common)
    return [*foreign, *(file for folder in folders for file in foreign_summary_files(folder))]


def foreign_summary_files(folder: Path) -> list[Path]:
    """Those of checkpoint_results.jsonl and summary.json in this folder that another program wrote."""
    own = {folder / LINES_FILE: _is_own_lines, folder / SUMMARY_FILE: _is_own_summary}
    # A run looks at these files several times; they are read again only where they changed.
    there = {
        path: _own_files.load(path, functools.partial(recognise, path))
        for path, recognise in own.items()
        if can_be_replaced(path)
    }
    damaged_counts_as_own = True in there.values()
    return [path for path, ours in there.items() if ours is False or (ours is None and not damaged_counts_as_own)]


def _is_own_lines(path: Path) -> bool | None:
    """None where the content does not tell. Lines are read one by one, and a file that is too large is not ours."""
    try:
        with open_regular(path) as stream:
            if os.fstat(stream.fileno()).st_size > SIZE_LIMIT:
                return False
            return are_own_lines(iter(lambda: stream.readline(MAX_LINE_LENGTH), b""))
    except OSError:
        return None


def _is_own_summary(path: Path) -> bool | None:
    document = parse_json(path)
    return None if document is None else isinstance(document, dict) and "slop_code" in document


def writes_summary(run: DiscoveredRun, settings: RunSettings) -> bool:
    """False for a part of a run, where there is nothing to evaluate, and where another evaluator holds its lock."""
    locked = run.submissions or any(issue.problem is not None for issue in run.issues)
    return bool(run.folder and locked and settings.whole_runs and not has_only_results(run))


def common_folder(runs: Sequence[DiscoveredRun], settings: RunSettings) -> Path | None:
    """The folder for the common summary of several runs; None where none is written."""
    return settings.output if settings.whole_runs and len(runs) > 1 else None


def has_only_results(run: DiscoveredRun) -> bool:
    """Results without snapshots, as a run is published: they cannot be evaluated, and their summary is kept."""
    if run.input_folder is None or run.submissions:
        return False
    if checkpoint_folders(run.input_folder, snapshot_of=lambda folder: folder / run.snapshot_dir):
        return False
    return bool(result_files(run.input_folder))
