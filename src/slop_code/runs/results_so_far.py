"""Results of an evaluation that goes on: finished checkpoints, and those that are not evaluated yet."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine
from slop_code.runs.read_results import RunResults
from slop_code.runs.run_lines import lines_so_far
from slop_code.runs.summary import skipped_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slop_code.execution.progress_events import ProgressEvent
    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.jobs.job_records import SubmissionKey
    from slop_code.runs.jobs.plan import Plan
    from slop_code.runs.run_evaluation import RunEvaluation

RUNNING = "running: "
"""Beginning of the reason of a checkpoint whose tests run, before the counts."""


def results_so_far(evaluation: RunEvaluation) -> list[RunResults]:
    """The planned checkpoints of each run. Any thread may call this while the evaluation goes on.

    An earlier result of a checkpoint that is to be evaluated is left out until the new one is there.
    """
    known, plan, counts = dict(evaluation.facts), evaluation.plan, dict(evaluation.tests_done)
    for target in (target for job in plan.jobs for target in job.targets):
        location = os.path.realpath(target.path), target.problem.name, target.checkpoint.name
        if target.key not in known and location in counts:
            known[target.key] = CheckpointFacts.no_verdict(RUNNING + _counts_text(counts[location]))
    return [RunResults(run.name, run.folder, lines=_lines(run, plan, known)) for run in evaluation.runs if run.folder]


def running_texts(results: Sequence[RunResults]) -> list[str]:
    """For each checkpoint whose tests run, its name and the counts."""
    lines = [line for run in results for line in run.lines or ()]
    running = [line for line in lines if line.state == "not_evaluated" and (line.reason or "").startswith(RUNNING)]
    return [f"{line.label} {(line.reason or '').removeprefix(RUNNING)}" for line in running]


def _counts_text(event: ProgressEvent) -> str:
    if not event.count:  # also where the stream cannot be read before the end of the tests
        return f"{event.total} tests"
    return f"{event.count} of {event.total} tests done" + (f", {event.failed} failed" if event.failed else "")


def stored_results(runs: Sequence[DiscoveredRun]) -> list[RunResults]:
    """All results in the folders of the runs, as a report shows them."""
    return [RunResults(run.name, run.folder) for run in runs if run.folder]


def _lines(run: DiscoveredRun, plan: Plan, known: Mapping[SubmissionKey, CheckpointFacts]) -> list[CheckpointLine]:
    lines = list(lines_so_far(run, plan, known))
    return [*lines, *skipped_lines(lines, [issue for issue in plan.issues if issue.run == run.name])]
