"""Lines of a run: the facts of each planned checkpoint, and earlier results that no new result has replaced."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError, UsageError
from slop_code.execution.submission import open_submission, tree_digest
from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine
from slop_code.runs.discover import checkpoint_number
from slop_code.runs.jobs.plan import OVERWRITE
from slop_code.runs.run_layout import RESULT_FILE, SNAPSHOT, relative_path
from slop_code.runs.scb.scb_lines import agent_facts_of, scb_lines_of
from slop_code.runs.summary import skipped_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from slop_code.runs.checkpoint_lines import Regressions
    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.jobs.job_records import RunIssue, Submission, SubmissionKey
    from slop_code.runs.jobs.plan import Plan
    from slop_code.runs.result_index import ResultIndex
    from slop_code.runs.scb.scb_lines import ScbLine

NOT_YET = "not evaluated yet"
INTERRUPTED = "the evaluation was interrupted before this checkpoint was finished"


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """A checkpoint of the run, before it is compared with the checkpoint before it."""

    problem: str
    name: str
    order: int
    path: Path
    """Of its evaluation.json, whether that exists or not."""

    facts: CheckpointFacts
    inputs: Path
    """The folder of the agent's files, next to the snapshot."""

    not_looked_at_again: str | None = None


def lines_of(
    run: DiscoveredRun, plan: Plan, known: Mapping[SubmissionKey, CheckpointFacts], index: ResultIndex
) -> list[CheckpointLine]:
    """A line for every planned checkpoint of a run folder: its facts, or the reason why there is no result.

    A verdict of an earlier evaluation counts until there is a new result. A shard has not seen the checkpoint before,
    so its lines have no regressions.
    """
    issues = [issue for issue in plan.issues if issue.run == run.name]
    checkpoints = {(item.problem, item.name): item for item in _planned(run, plan, known, index)}
    for item in _kept_despite_issues(issues, index):
        checkpoints.setdefault((item.problem, item.name), item)
    scb_lines = _scb_lines(run)
    lines: list[CheckpointLine] = []
    before: _Checkpoint | None = None
    for item in sorted(checkpoints.values(), key=lambda item: (item.problem, item.order)):
        regressions = None
        if item.facts.state == "evaluated":
            if before is not None and before.problem == item.problem and plan.shard is None:
                regressions = index.regressions(item.path, before.path, before.name)
            before = item
        lines.append(_line(run, item, scb_lines, has_file=_is_file_of(item, index), regressions=regressions))
    return [*lines, *skipped_lines(lines, issues)]


def lines_so_far(
    run: DiscoveredRun, plan: Plan, known: Mapping[SubmissionKey, CheckpointFacts]
) -> Iterator[CheckpointLine]:
    """As `lines_of` while the evaluation goes on, without issues, earlier results and regressions."""
    scb_lines = _scb_lines(run)
    for submission, facts in _with_facts(run, plan, known):
        item = _checkpoint(submission, facts or CheckpointFacts.no_verdict(NOT_YET))
        yield _line(run, item, scb_lines, has_file=item.facts.state == "evaluated")


def _scb_lines(run: DiscoveredRun) -> dict[tuple[str, str], ScbLine]:
    """By problem and checkpoint."""
    assert run.input_folder is not None
    return {(line.problem, line.checkpoint): line for line in scb_lines_of(run.input_folder)}


def _line(
    run: DiscoveredRun,
    item: _Checkpoint,
    scb_lines: Mapping[tuple[str, str], ScbLine],
    *,
    has_file: bool,
    regressions: Regressions | None = None,
) -> CheckpointLine:
    """`has_file` says that the evaluation.json of the checkpoint is that of these facts."""
    assert run.folder is not None
    return CheckpointLine.with_facts(
        item.facts,
        run=run.name,
        problem=item.problem,
        checkpoint=item.name,
        order=item.order,
        regressions=regressions,
        evaluation=relative_path(item.path, run.folder) if has_file else None,
        agent=agent_facts_of(item.inputs, scb_lines.get((item.problem, item.name))),
        not_looked_at_again=item.not_looked_at_again,
    )


def _with_facts(
    run: DiscoveredRun, plan: Plan, known: Mapping[SubmissionKey, CheckpointFacts]
) -> Iterator[tuple[Submission, CheckpointFacts | None]]:
    """Submissions that are up to date or have a job; not those with an issue, nor those of another shard."""
    jobs = {target.key for job in plan.jobs for target in job.targets}
    for submission in run.submissions:
        if submission.key in known or submission.key in jobs:
            yield submission, known.get(submission.key)


def _checkpoint(submission: Submission, facts: CheckpointFacts, not_looked_at_again: str | None = None) -> _Checkpoint:
    assert submission.output is not None
    problem, name = submission.problem, submission.checkpoint.name
    path, order = submission.output / RESULT_FILE, checkpoint_number(problem, name)
    return _Checkpoint(problem.name, name, order, path, facts, submission.path.parent, not_looked_at_again)


def _planned(
    run: DiscoveredRun, plan: Plan, known: Mapping[SubmissionKey, CheckpointFacts], index: ResultIndex
) -> Iterator[_Checkpoint]:
    """The checkpoints that `_with_facts` has, with an earlier verdict until there is a new result."""
    jobs = {target.key: (job.digest, plan.reasons[target.key]) for job in plan.jobs for target in job.targets}
    for submission, facts in _with_facts(run, plan, known):
        if facts is not None and facts.state == "evaluated":
            yield _checkpoint(submission, facts)
            continue
        assert submission.output is not None
        digest, reason = jobs[submission.key]
        stale = INTERRUPTED if reason == OVERWRITE else reason  # a finished evaluation has facts
        earlier = index.facts(submission.output / RESULT_FILE)
        if earlier is not None and earlier.is_verdict_on(digest):
            yield _checkpoint(submission, earlier, stale if facts is None else _failure_text(facts))
        else:
            yield _checkpoint(submission, facts or CheckpointFacts.no_verdict(f"not evaluated: {stale}"))


def _failure_text(facts: CheckpointFacts) -> str:
    reason = facts.reason or "no reason given"
    return f"infrastructure failure: {reason}" if facts.state == "infrastructure_failure" else reason


def _kept_despite_issues(issues: list[RunIssue], index: ResultIndex) -> Iterator[_Checkpoint]:
    """Earlier verdicts on checkpoints that cannot be evaluated now."""
    for issue in issues:
        if issue.output is None or issue.problem is None or issue.checkpoint is None:
            continue
        path = issue.output / RESULT_FILE
        facts = index.facts(path)
        snapshot = issue.snapshot or issue.output / SNAPSHOT
        if facts is not None and facts.is_verdict_on(_digest_in(snapshot)):
            names = issue.problem, issue.checkpoint, issue.order or 1
            yield _Checkpoint(*names, path, facts, snapshot.parent, issue.reason)


def _digest_in(snapshot: Path) -> str | None:
    """Digest of a snapshot; None where there is none that can be read."""
    try:
        return tree_digest(open_submission(snapshot)) if snapshot.is_dir() else None
    except (UsageError, InfrastructureError, OSError):
        return None


def _is_file_of(item: _Checkpoint, index: ResultIndex) -> bool:
    """A failure that wrote no file leaves that of an earlier evaluation, which has other facts."""
    if item.facts.state == "infrastructure_failure":
        return index.facts(item.path) == item.facts
    return item.facts.state == "evaluated" and os.path.lexists(item.path)
