"""Mirrored tree: results of runs in a folder of their own, in the layout of the runs, which stay as they are."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from slop_code.errors import UsageError
from slop_code.runs.folders.result_folders import LEVELS, result_files
from slop_code.runs.run_layout import names_or_none, real_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.jobs.job_records import RunIssue, Submission


def mirror_folder(output: Path, name: str, *, several: bool) -> Path:
    """The folder for the results of a run; several runs have a folder each, by the name of the run."""
    if not several:
        return output
    if "/" in name or name in ("", ".", ".."):
        raise UsageError(f"{name}: another run has the same name; evaluate each with an -o of its own")
    return output / name


def mirrored(run: DiscoveredRun, folder: Path) -> DiscoveredRun:
    """The run with all that is written in `folder`, nothing in its own."""
    source = run.folder
    assert source is not None

    def moved(item: Submission | RunIssue) -> Path | None:
        return folder / item.output.relative_to(source) if item.output else None

    return replace(
        run,
        folder=folder,
        source=source,
        submissions=tuple(replace(item, output=moved(item)) for item in run.submissions),
        issues=tuple(replace(item, output=moved(item)) for item in run.issues),
    )


def check_output_folder(output: Path, runs: Sequence[DiscoveredRun]) -> None:
    if os.path.lexists(output) and not output.is_dir():
        raise UsageError(f"{output}: not a folder; give one for the results")
    if inside := snapshot_around(output, runs):
        raise UsageError(
            f"{output}: lies in the snapshot {inside}, where nothing is ever written; give a folder outside of it"
        )


def check_mirror(output: Path, runs: Sequence[DiscoveredRun]) -> None:
    """Check before anything is written that nothing would be written in a run, or in a tree of another layout."""
    check_output_folder(output, runs)
    _check_layout(output, several=len(runs) > 1)
    sources = {real_path(run.source): run.source for run in runs if run.source}
    targets = [output, *(run.folder for run in runs if run.folder)]
    targets += [item.output for run in runs for item in run.submissions if item.output]
    for target in targets:
        real = real_path(target)
        if inside := next((sources[folder] for folder in (real, *real.parents) if folder in sources), None):
            raise UsageError(f"{output}: {target} would lie in the run {inside}; give a folder outside of the runs")


def _check_layout(output: Path, *, several: bool) -> None:
    """Results of several runs are a level deeper than those of one: in the same folder, one kind hides the other."""
    runs = [output / name for name in names_or_none(output)]
    depths = {len(path.relative_to(output).parts) for run in runs for path in result_files(run)}
    if several and LEVELS + 1 in depths:
        raise UsageError(f"{output}: holds the results of a single run; give several runs an -o of their own")
    if not several and LEVELS + 2 in depths:
        raise UsageError(f"{output}: holds the results of several runs; give a single run an -o of its own")


def snapshot_around(path: Path, runs: Sequence[DiscoveredRun]) -> Path | None:
    """The snapshot of these runs that the path is or lies in, whether the path exists or not."""
    real = real_path(path)
    for run in runs:
        if run.input_folder and real.is_relative_to(root := run.input_folder.resolve()):
            parts = real.relative_to(root).parts
            if run.snapshot_dir in parts:
                return run.input_folder.joinpath(*parts[: parts.index(run.snapshot_dir) + 1])
        for submission in run.submissions:
            if real.is_relative_to(submission.path.resolve()):
                return submission.path
    return None
