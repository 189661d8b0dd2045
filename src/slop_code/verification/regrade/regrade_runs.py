"""Regrade of locked runs: earlier results are kept, then each checkpoint is graded or evaluated again, and compared."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from slop_code._version import __version__
from slop_code.errors import SlopCodeError, UsageError
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.provenance import CHANGED_INPUTS, evaluation_version
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.result_files.origin import remembered_problem
from slop_code.evaluation.staging import inputs_of
from slop_code.runs.result_cache_key import ExpectedDigests
from slop_code.runs.run_layout import RESULT_FILE
from slop_code.runs.run_lines import INTERRUPTED
from slop_code.verification.regrade.earlier_results import EarlierResults
from slop_code.verification.regrade.grade_again import GRADED_AGAIN, grade_again, replace_grade
from slop_code.verification.regrade.input_changes import InputChanges, known_inputs
from slop_code.verification.regrade.regrade_record import How, RegradedCheckpoint, RegradeRecord
from slop_code.verification.regrade.test_changes import test_changes, verdict_changes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slop_code.evaluation.report import Digests
    from slop_code.evaluation.test_code.test_inputs import TestInputs
    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.job_records import RunIssue, Submission, SubmissionKey
    from slop_code.runs.run_evaluation import RunEvaluation

Action = Literal["unchanged", "grade again", "evaluate again"]


@dataclass(frozen=True, slots=True)
class PlannedCheckpoint:
    submission: Submission
    action: Action
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
    planned = [PlannedCheckpoint(submission, "unchanged") for submission, _ in plan.up_to_date]
    for job in plan.jobs:
        for target in job.targets:
            run, reason = folders[target.run], plan.reason(job, target)
            inputs = _inputs_to_grade_with(target, run, expected) if run else None
            action: Action = "evaluate again" if inputs is None else "grade again"
            planned.append(PlannedCheckpoint(target, action, reason, inputs))
    return planned


def _inputs_to_grade_with(target: Submission, run: Path, expected: ExpectedDigests) -> TestInputs | None:
    """The inputs now, if nothing that decides how the tests run is known or suspected to have changed."""
    assert target.output is not None
    if not os.path.lexists(target.output / RESULT_FILE):
        return None
    stored = CorrectnessResults.load(target.output / RESULT_FILE)
    digests, provenance = expected.digests(target), stored.provenance
    if provenance.evaluation_version != evaluation_version() or not _only_problem_changed(provenance.digests, digests):
        return None
    old = known_inputs(target.output, stored, problem_before(target.output, run))
    new = inputs_of(target.problem, target.checkpoint)
    if old is None or not InputChanges(old, new).only_grading(target.problem.path / "tests"):
        return None
    return None if grade_again(target.output, target.problem, new) is None else new


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
    """Keeps every result of each run. All labels are checked before anything is replaced."""
    kept = {run.name: EarlierResults(run.folder, labels[run.name]) for run in evaluation.runs if run.folder}
    for item in planned:
        if os.path.lexists(item.output / RESULT_FILE):
            kept[item.submission.run].keep(item.output, stale=item.action != "unchanged")
    for issue in evaluation.plan.issues:
        if issue.output is not None and os.path.lexists(issue.output / RESULT_FILE):
            kept[issue.run].keep(issue.output, stale=False)
    for earlier in kept.values():
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
            if results is not None:
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
    order = {(item.submission.problem.name, item.submission.checkpoint.name): number for number, item in _ordered(own)}
    checkpoints.sort(key=lambda item: order.get((item.problem, item.checkpoint), len(order)))
    finished = len(done) == len(own)
    record = RegradeRecord(label=earlier.label, finished=finished, slop_code=__version__, checkpoints=checkpoints)
    record.save(earlier.folder)
    return record


def _ordered(planned: Sequence[PlannedCheckpoint]) -> list[tuple[int, PlannedCheckpoint]]:
    """By problem, in the problem's order."""

    def place(item: PlannedCheckpoint) -> tuple[str, int]:
        problem = item.submission.problem
        return problem.name, list(problem.checkpoints).index(item.submission.checkpoint.name)

    return list(enumerate(sorted(planned, key=place)))


def _regraded(item: PlannedCheckpoint, evaluation: RunEvaluation, earlier: EarlierResults) -> RegradedCheckpoint:
    names = {"problem": item.submission.problem.name, "checkpoint": item.submission.checkpoint.name}
    kept, run = earlier.of(item.output), earlier.run
    facts = evaluation.facts.get(item.submission.key)
    failure = INTERRUPTED if facts is None else facts.reason
    if not os.path.lexists(kept / RESULT_FILE):
        return RegradedCheckpoint(**names, how=How.KEPT if failure else How.FIRST, reason=failure or item.reason)
    if not earlier.is_replaced(item.output):
        return RegradedCheckpoint(**names, how=How.KEPT if failure else How.UNCHANGED, reason=failure)
    old, new = (CorrectnessResults.load(folder / RESULT_FILE) for folder in (kept, item.output))
    before = known_inputs(kept, old, problem_before(item.output, run))
    after = known_inputs(item.output, new, item.submission.problem)
    inputs = InputChanges(before, after) if before and after else None
    return RegradedCheckpoint(
        **names,
        how=How.GRADED if GRADED_AGAIN in new.warnings else How.EVALUATED,
        reason=failure or item.reason,
        verdicts=verdict_changes(old, new),
        tests=test_changes(old, new, inputs),
    )


def _not_regraded(issue: RunIssue) -> RegradedCheckpoint:
    assert issue.problem is not None
    assert issue.checkpoint is not None
    return RegradedCheckpoint(problem=issue.problem, checkpoint=issue.checkpoint, how=How.KEPT, reason=issue.reason)
