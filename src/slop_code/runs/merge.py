"""Merge of the results of shards that ran on copies of a run folder."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError, ResultError, UsageError
from slop_code.evaluation.result_files.staleness import evaluation_version
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.discover import issue_for
from slop_code.runs.jobs.job_records import RunIssue
from slop_code.runs.result_archive import pack_result, read_archived_results, unpack_result
from slop_code.runs.result_cache_key import ExpectedDigests, stale_reason
from slop_code.runs.run_layout import RESULT_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slop_code.evaluation.report import CorrectnessResults, Digests
    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.jobs.job_records import Submission

Statuses = dict[tuple[str, str], str]


def merge_copies(run: DiscoveredRun, copies: Sequence[Path]) -> DiscoveredRun:
    """Take results that are up to date in a copy and not in the run; two that differ are an issue.

    Submissions and problems with errors are skipped here: the plan reports them.
    """
    for copy in copies:
        if not copy.is_dir():
            raise UsageError(f"{copy}: there is no such folder; give a copy of the run")
    expected, issues = ExpectedDigests(), list(run.issues)
    for copy in copies if run.submissions else ():
        folders = [copy / _relative(submission, run) for submission in run.submissions]
        if not any(os.path.lexists(folder / RESULT_FILE) for folder in folders):
            reason = f"{copy}: no result of this run in it; expected <problem>/<checkpoint>/{RESULT_FILE}"
            issues.append(RunIssue(run.name, None, None, reason))
    for submission in run.submissions:
        try:
            digests = expected.digests(submission)
        except (UsageError, InfrastructureError):
            continue
        try:
            _merge_submission(submission, run, copies, digests)
        except UsageError as error:
            issues.append(issue_for(submission, str(error)))
        except OSError as error:
            raise InfrastructureError(
                f"{submission.output}: {error.strerror}; every result merged before is whole: fix this and start again"
            ) from error
    return replace(run, issues=tuple(issues))


def _relative(submission: Submission, run: DiscoveredRun) -> Path:
    assert submission.output is not None
    assert run.folder is not None
    return submission.output.relative_to(run.folder)


def _merge_submission(submission: Submission, run: DiscoveredRun, copies: Sequence[Path], digests: Digests) -> None:
    assert submission.output is not None
    relative = _relative(submission, run)
    chosen: Statuses | None = None
    damaged: ResultError | None = None
    has_result = os.path.lexists(submission.output / RESULT_FILE)
    for folder in [submission.output, *[copy / relative for copy in copies]]:
        if not os.path.lexists(folder / RESULT_FILE):
            continue
        try:
            archive = pack_result(folder)
            results = read_archived_results(archive)
        except (OSError, ResultError) as error:
            damaged = damaged or ResultError(f"{folder / RESULT_FILE}: {getattr(error, 'strerror', None) or error}")
            continue
        if stale_reason(CheckpointFacts.of(results), digests, evaluation_version()) is not None:
            if not has_result:
                unpack_result(archive, submission.output)
                has_result = True
        elif chosen is None:
            chosen, has_result = _statuses(results), True
            if folder != submission.output:
                unpack_result(archive, submission.output)
        elif chosen != _statuses(results):
            raise ResultError(f"{folder / RESULT_FILE}: differs from another result for the same submission and tests")
    if damaged is not None:
        raise damaged if chosen is None else ResultError(f"{damaged}; another result for this checkpoint is used")


def _statuses(results: CorrectnessResults) -> Statuses:
    return {(test.file_path, test.id): test.status for test in results.tests}
