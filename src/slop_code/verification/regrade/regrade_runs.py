"""Regrade of locked runs: earlier results are kept, then each checkpoint is graded or evaluated again, and compared."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slop_code._version import __version__
from slop_code.errors import SlopCodeError, UsageError
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.problem.problem_contents import inputs_of
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.result_files.origin import remembered_problem
from slop_code.evaluation.result_files.staleness import CHANGED_INPUTS, evaluation_version
from slop_code.runs.discover import checkpoint_number
from slop_code.runs.result_cache_key import ExpectedDigests
from slop_code.runs.run_layout import RESULT_FILE
from slop_code.runs.run_lines import INTERRUPTED
from slop_code.verification.regrade.earlier_results import EarlierResults
from slop_code.verification.regrade.grade_again import GRADED_AGAIN, follows_from_evidence, grade_again, replace_grade
from slop_code.verification.regrade.input_changes import InputChanges, known_inputs
from slop_code.verification.regrade.regrade_record import RegradedCheckpoint, RegradeOutcome, RegradeRecord
from slop_code.verification.regrade.test_changes import changed_tests, verdict_changes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.report import Digests
    from slop_code.evaluation.test_code.test_inputs import TestInputs
    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.jobs.job_records import RunIssue, Submission, SubmissionKey
    from slop_code.runs.run_evaluation import RunEvaluation


@dataclass(frozen=True, slots=True)
class PlannedCheckpoint:
    submission: Submission
    outcome: RegradeOutcome
    reason: str | None = None
    inputs: TestInputs | None = None
    """Inputs to grade again with."""

    @property
    def output(self) -> Path:
        assert self.submission.output is not None  # that of a run folder
        return self.submission.output


def plan_regrade(evaluation: RunEvaluation) -> list[PlannedCheckpoint]:
    """Nothing is written. A result that slop-code cannot read is a UsageError: it could not be compared."""
    for index in evaluation.indexes.values():
        for reason in index.unreadable.values():
            step = "regrade compares results of slop-code only; evaluate the run into another folder: slop-code eval -o"
            raise UsageError(f"{reason}\n{step}")
    plan, expected = evaluation.plan, ExpectedDigests()
    folders = {run.name: run.folder for run in evaluation.runs}
    planned = [PlannedCheckpoint(submission, RegradeOutcome.UNCHANGED) for submission, _ in plan.up_to_date]
    for job in plan.jobs:
        for target in job.targets:
            run = folders[target.run]
            changes = _grading_changes(target, run, expected) if run else None
            if changes is not None:
                reason, inputs = f"changed: {changes.text}", changes.new
                planned.append(PlannedCheckpoint(target, RegradeOutcome.GRADED, reason, inputs))
            else:
                evaluated = os.path.lexists(_result(target))
                outcome = RegradeOutcome.EVALUATED if evaluated else RegradeOutcome.FIRST
                planned.append(PlannedCheckpoint(target, outcome, plan.reasons[target.key]))
    return sorted(planned, key=_order)


def _grading_changes(target: Submission, run: Path, expected: ExpectedDigests) -> InputChanges | None:
    """The changes of the inputs, if they are known and none of them can change how a test runs."""
    assert target.output is not None
    if not os.path.lexists(target.output / RESULT_FILE):
        return None
    stored = CorrectnessResults.load(target.output / RESULT_FILE)
    digests, provenance = expected.digests(target), stored.provenance
    if provenance.evaluation_version != evaluation_version() or not _only_problem_changed(provenance.digests, digests):
        return None
    old = known_inputs(target.output, stored, problem_before(target.output, run))
    changes = None if old is None else InputChanges(old, inputs_of(target.problem, target.checkpoint))
    if changes is None or not changes.only_grading(target.problem.path / "tests"):
        return None
    return changes if follows_from_evidence(target.output) else None


def _only_problem_changed(stored: Digests, current: Digests) -> bool:
    others = [name for name in CHANGED_INPUTS if name not in ("tests", "config")]
    return all(getattr(stored, name) == getattr(current, name) for name in others)


def problem_before(output: Path, run: Path) -> ProblemConfig | None:
    """The problem of the last evaluation, as its folder is now."""
    known = remembered_problem(output.parent, run)
    return None if known is None else _loaded(known)


@functools.lru_cache(maxsize=8)
def _loaded(path: Path) -> ProblemConfig | None:
    try:
        return ProblemConfig.from_yaml(path)
    except (SlopCodeError, OSError):
        return None


def keep_earlier(
    evaluation: RunEvaluation, planned: Sequence[PlannedCheckpoint], labels: Mapping[str, str]
) -> dict[str, EarlierResults]:
    """Keeps every result of each run in which something is to be done. Nothing is replaced before all are kept."""
    changed = {item.submission.run for item in planned if item.outcome != RegradeOutcome.UNCHANGED}
    runs = [EarlierResults(run.folder, labels[run.name]) for run in evaluation.runs if run.folder]
    names = [run.name for run in evaluation.runs if run.folder]
    kept = {name: run for name, run in zip(names, runs, strict=True) if name in changed or os.path.lexists(run.folder)}
    for item in planned:
        if item.submission.run in kept and os.path.lexists(item.output / RESULT_FILE):
            kept[item.submission.run].keep(item.output, stale=item.outcome != RegradeOutcome.UNCHANGED)
    for issue in evaluation.plan.issues:
        if issue.run in kept and issue.output is not None and os.path.lexists(issue.output / RESULT_FILE):
            kept[issue.run].keep(issue.output, stale=False)
    for earlier in kept.values():
        earlier.refuse_links(earlier.folder)
        if not earlier.is_complete and not evaluation.settings.partial:
            earlier.keep_summary()
        RegradeRecord(label=earlier.label, finished=False, slop_code=__version__).save(earlier.folder)
    return kept


def grade_planned(evaluation: RunEvaluation, planned: Sequence[PlannedCheckpoint]) -> RunEvaluation:
    """Grades again what can be; the evaluation of the rest."""
    graded: dict[SubmissionKey, Submission] = {}
    for item in planned:
        if item.inputs is not None:
            results = grade_again(item.output, item.submission.problem, item.inputs)
            replace_grade(item.output, results, item.inputs)
            graded[item.submission.key] = item.submission
    facts = [(each, evaluation.indexes[each.run].facts(_result(each))) for each in graded.values()]
    up_to_date = [*evaluation.plan.up_to_date, *((each, fact) for each, fact in facts if fact is not None)]
    rest = [replace(job, targets=tuple(t for t in job.targets if t.key not in graded)) for job in evaluation.plan.jobs]
    jobs = tuple(job for job in rest if job.targets)
    return replace(evaluation, plan=replace(evaluation.plan, jobs=jobs, up_to_date=tuple(up_to_date)))


def _result(submission: Submission) -> Path:
    assert submission.output is not None
    return submission.output / RESULT_FILE


def finish_record(
    run: DiscoveredRun, evaluation: RunEvaluation, earlier: EarlierResults, planned: Sequence[PlannedCheckpoint]
) -> RegradeRecord:
    """The record of a run, written next to its earlier results."""
    own = [item for item in planned if item.submission.run == run.name]
    done = {item.submission.key for item in own} & evaluation.facts.keys()
    checkpoints = [_regraded(item, evaluation, earlier) for item in own]
    issues = [issue for issue in evaluation.plan.issues if issue.run == run.name]
    checkpoints += [_not_regraded(issue) for issue in issues if issue.problem and issue.checkpoint]
    finished = len(done) == len(own)
    record = RegradeRecord(label=earlier.label, finished=finished, slop_code=__version__, checkpoints=checkpoints)
    record.save(earlier.folder)
    return record


def _order(item: PlannedCheckpoint) -> tuple[str, str, int]:
    submission = item.submission
    return submission.run, submission.problem.name, checkpoint_number(submission.problem, submission.checkpoint.name)


def _regraded(item: PlannedCheckpoint, evaluation: RunEvaluation, earlier: EarlierResults) -> RegradedCheckpoint:
    names = {"problem": item.submission.problem.name, "checkpoint": item.submission.checkpoint.name}
    kept, run = earlier.of(item.output), earlier.run
    facts = evaluation.facts.get(item.submission.key)
    failure = INTERRUPTED if facts is None else facts.reason
    if not os.path.lexists(kept / RESULT_FILE):
        outcome = RegradeOutcome.NOT_REGRADED if failure else RegradeOutcome.FIRST
        return RegradedCheckpoint(**names, outcome=outcome, reason=failure or item.reason)
    if not earlier.is_replaced(item.output):
        outcome = RegradeOutcome.NOT_REGRADED if failure else RegradeOutcome.UNCHANGED
        return RegradedCheckpoint(**names, outcome=outcome, reason=failure)
    old, new = (CorrectnessResults.load(folder / RESULT_FILE) for folder in (kept, item.output))
    before = known_inputs(kept, old, problem_before(item.output, run))
    after = known_inputs(item.output, new, item.submission.problem)
    inputs = InputChanges(before, after) if before and after else None
    return RegradedCheckpoint(
        **names,
        outcome=RegradeOutcome.GRADED if GRADED_AGAIN in new.warnings else RegradeOutcome.EVALUATED,
        reason=failure or (f"changed: {inputs.text}" if inputs and inputs.text else item.reason),
        verdicts=verdict_changes(old, new),
        tests=changed_tests(old, new, inputs),
    )


def _not_regraded(issue: RunIssue) -> RegradedCheckpoint:
    assert issue.problem is not None
    assert issue.checkpoint is not None
    outcome = RegradeOutcome.NOT_REGRADED
    return RegradedCheckpoint(problem=issue.problem, checkpoint=issue.checkpoint, outcome=outcome, reason=issue.reason)
