"""Evaluation of a part of the tests over whole runs: printed, never stored with the runs, and no verdict."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit, exit_for
from slop_code.cli.job_progress import run_with_progress
from slop_code.cli.messages import print_json, print_step
from slop_code.errors import UsageError
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.result_files.stored_evaluation import check_replaces_no_verdict
from slop_code.execution.cache import Cache
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.folders.mirror import check_output_folder, mirror_folder
from slop_code.runs.jobs.run_control import RunControl
from slop_code.runs.run_evaluation import open_runs
from slop_code.runs.run_layout import RESULT_FILE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.jobs.job_records import Submission
    from slop_code.runs.run_evaluation import RunEvaluation, RunSettings


@dataclass(frozen=True, slots=True)
class PartResult:
    label: str
    results: CorrectnessResults | None
    reason: str | None
    """Why there are no results."""

    @property
    def empty(self) -> bool:
        """No test of this checkpoint was selected."""
        return self.reason is None if self.results is None else self.results.selects_none


def evaluate_part(
    runs: Sequence[DiscoveredRun], settings: RunSettings, words: Sequence[str], arguments: argparse.Namespace
) -> int:
    """The results of the runs, their summaries and the result cache stay as they are."""
    if arguments.dry_run or arguments.shard or arguments.overwrite:
        raise UsageError("--dry-run, --shard and --overwrite cannot be used with a selection of tests; leave them out")
    if arguments.output is not None:
        check_output_folder(arguments.output, runs)
    with _output_folders(runs, arguments.output) as folders:
        part = [_with_outputs(run, folder) for run, folder in zip(runs, folders, strict=True)]
        for item in (submission for run in part for submission in run.submissions):
            assert item.output is not None
            check_replaces_no_verdict(item.output)
        settings = replace(settings, overwrite=True, pytest_args=tuple(words))
        with open_runs(part, Cache.default(), settings, lock=False) as evaluation:
            control = RunControl()
            run_with_progress(evaluation, control, arguments)
            parts = list(_results(evaluation))
            if control.stopped:
                raise KeyboardInterrupt
    chosen = [result for result in parts if not result.empty]
    if parts and not chosen:
        raise UsageError("no checkpoint has a test that was selected; change -k, -m, --group or --test")
    _show(chosen, len(parts) - len(chosen), arguments)
    if arguments.output is not None:
        print_step(f"results of this part, without a verdict, are in {arguments.output}")
    return Exit.INTERRUPTED if control.finishing else _status(chosen, arguments)


@contextlib.contextmanager
def _output_folders(runs: Sequence[DiscoveredRun], given: Path | None) -> Iterator[list[Path]]:
    """A folder for each run: in the one from the user, else in one that is removed at the end."""
    if given is not None:
        yield [mirror_folder(given, run.name, several=True) for run in runs]
        return
    folder = Path(tempfile.mkdtemp(prefix="slop-code-part-"))
    try:
        yield [folder / str(number) for number in range(len(runs))]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _with_outputs(run: DiscoveredRun, folder: Path) -> DiscoveredRun:
    """The run's results below `folder`, whatever the name of the run is: it may be a path."""
    moved = (replace(item, output=folder / item.problem.name / item.checkpoint.name) for item in run.submissions)
    return replace(run, submissions=tuple(moved))


def _results(evaluation: RunEvaluation) -> Iterator[PartResult]:
    for submission in (submission for run in evaluation.runs for submission in run.submissions):
        yield _result_of(submission, evaluation)
    for issue in evaluation.plan.issues:
        yield PartResult(issue.label, None, issue.reason)


def _result_of(submission: Submission, evaluation: RunEvaluation) -> PartResult:
    assert submission.output is not None
    path, facts = submission.output / RESULT_FILE, evaluation.facts.get(submission.key)
    if facts is not None and path.exists():
        results = CorrectnessResults.load(path)
        if CheckpointFacts.of(results).reason == facts.reason:  # an earlier command may have left another one
            return PartResult(submission.label, results, None)
    unselected = facts is not None and facts.state == "not_evaluated"
    return PartResult(submission.label, None, None if unselected else facts.reason if facts else "not evaluated")


def _show(chosen: Sequence[PartResult], empty: int, arguments: argparse.Namespace) -> None:
    from slop_code.reporting.result_lines import part_lines
    from slop_code.reporting.terminal import ResultConsole, print_lines

    if arguments.json:
        print_json([_document(result) for result in chosen])
        return
    console = ResultConsole()
    for result in chosen:
        print_lines(console, part_lines(result.label, result.results, result.reason))
    if empty:
        print_step(f"{empty} checkpoints have no test that was selected")


def _document(part: PartResult) -> dict[str, object]:
    results = part.results
    return {
        "submission": part.label,
        "reason": part.reason if results is None else results.infrastructure_failure_reason,
        "tests": {} if results is None else {test.nodeid: test.status for test in results.tests},
        "left_out": 0 if results is None else results.deselected,
    }


def _status(chosen: Sequence[PartResult], arguments: argparse.Namespace) -> Exit:
    """The most severe status: no result, then a test that did not pass."""
    statuses = [
        Exit.INFRASTRUCTURE if part.results is None else exit_for(part.results, arguments.pass_policy)
        for part in chosen
    ]
    return max(statuses, default=Exit.PASSED)
