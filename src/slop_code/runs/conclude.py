"""The end of a run: a line for each checkpoint, and what they come to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine, write_lines
from slop_code.runs.discover import RESULT_FILE, checkpoint_number
from slop_code.runs.summary import lost, summarise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from slop_code.runs.checkpoint_lines import Regressions
    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.job_records import RunIssue, Submission
    from slop_code.runs.plan import Plan
    from slop_code.runs.result_index import ResultIndex
    from slop_code.runs.summary import RunSummary

LINES_FILE = "checkpoint_results.jsonl"
SUMMARY_FILE = "summary.json"


def lines_of(
    run: DiscoveredRun, plan: Plan, outcomes: Mapping[int, CheckpointFacts], index: ResultIndex
) -> list[CheckpointLine]:
    """Every checkpoint of the run that was planned: what came of it, or why nothing did.

    A shard has not seen the checkpoint before, so that there is nothing to compare.
    """
    left = {id(target): plan.reason(job, target) for job in plan.jobs for target in job.targets}
    found: list[CheckpointLine] = []
    before: tuple[str, Submission] | None = None
    for submission in run.submissions:
        if id(submission) not in outcomes and id(submission) not in left:
            continue  # a trouble, or another shard's
        facts = outcomes.get(id(submission)) or CheckpointFacts.none(f"not evaluated: {left[id(submission)]}")
        if before is not None and before[0] != submission.problem.name:
            before = None
        regressions = None
        if facts.state == "evaluated":
            if plan.shard is None:
                regressions = _regressions(index, before[1] if before else None, submission)
            before = (submission.problem.name, submission)
        found.append(_line(run, submission, facts, regressions, index))
    return [*found, *lost(found, [one for one in plan.issues if one.run == run.name])]


def _regressions(index: ResultIndex, earlier: Submission | None, later: Submission) -> Regressions | None:
    if earlier is None or earlier.output is None or later.output is None:
        return None
    return index.regressions(later.output / RESULT_FILE, earlier.output / RESULT_FILE, earlier.checkpoint.name)


def _line(
    run: DiscoveredRun,
    submission: Submission,
    facts: CheckpointFacts,
    regressions: Regressions | None,
    index: ResultIndex,
) -> CheckpointLine:
    result = submission.output / RESULT_FILE if submission.output else None
    there = result is not None and _tells(result, facts, index)
    return CheckpointLine(
        **facts.model_dump(),
        run=run.name,
        problem=submission.problem.name,
        checkpoint=submission.checkpoint.name,
        order=checkpoint_number(submission.problem, submission.checkpoint.name),
        regressions=regressions,
        evaluation=os.path.relpath(result, run.folder) if there and result and run.folder else None,
    )


def _tells(result: Path, facts: CheckpointFacts, index: ResultIndex) -> bool:
    """Whether the file is where these facts are from: a failure that left none leaves an earlier one there."""
    if facts.state == "infrastructure_failure":
        return index.facts(result) == facts
    return facts.state == "evaluated" and os.path.lexists(result)


def write_summary(folder: Path, lines: Sequence[CheckpointLine], issues: Iterable[RunIssue]) -> RunSummary:
    summary = summarise(lines, list(issues))
    try:
        write_lines(folder / LINES_FILE, lines)
        summary.save(folder / SUMMARY_FILE)
    except OSError as error:
        raise InfrastructureError(
            f"{folder}: the summary cannot be written: {error.strerror}; "
            "every result is whole: make room or make it writable, and start again"
        ) from error
    return summary
