"""Differences between the sides of a comparison: pure functions over the loaded runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from slop_code._suggestions import first_names
from slop_code._version import __version__
from slop_code.comparison.load import ABSENT, ABSENT_CHECKPOINT, LETTERS, STATUSES, JudgeInputs, read_sides
from slop_code.comparison.records import (
    Change,
    CheckpointChange,
    Comparison,
    NoVerdict,
    PairComparison,
    SideRuns,
    TestChange,
    Verdicts,
)
from slop_code.comparison.significance import significance_of, with_p
from slop_code.errors import UsageError
from slop_code.evaluation.policy import NAMED_POLICIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from slop_code.comparison.load import CheckpointRuns, Side
    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.reports.raw_test import Status

PASSED = LETTERS["passed"]
MAX_LISTED = 5
JUDGE_INPUT_LABELS = {
    "tests": "the tests",
    "config": "the problem's config",
    "environment": "the environment",
    "image": "the container image",
    "evaluation_version": "slop-code's rules or locked tools (evaluation_version)",
    "submission_python": "the Python of the submission",
    "python": "the Python of the tests",
    "test_dependencies": "versions of test dependencies",
}


@dataclass(frozen=True, slots=True)
class ObservedStatus:
    """The status of a test, or the verdict on a checkpoint, in a run."""

    letter: str
    submission: str | None
    judge: JudgeInputs


def change_of(base: Sequence[ObservedStatus], other: Sequence[ObservedStatus]) -> Change | None:
    """Compares the shares of runs that passed: from 1 of 3 on the base to 2 of 3 on the other side is "gained".

    Runs of the same submission with different statuses are left out; if they alone differ, it is flaky or rejudged.
    """
    if not base or not other:
        return "added" if other else "removed" if base else None
    contradictions = _contradictions([*base, *other])
    shares = [
        _share([observation.letter for observation in side if observation.submission not in contradictions])
        for side in (base, other)
    ]
    if shares[0] is not None and shares[1] is not None and shares[0] != shares[1]:
        return "gained" if shares[0] < shares[1] else "lost"
    if not contradictions:
        return None
    return "flaky" if "flaky" in contradictions.values() else "rejudged"


def _contradictions(observations: Iterable[ObservedStatus]) -> dict[str | None, Change]:
    """Submissions with different statuses: flaky under the same judge, rejudged where only the judges differ."""
    letters: dict[str, dict[JudgeInputs, set[str]]] = {}
    for observation in observations:
        if observation.submission is not None:
            by_judge = letters.setdefault(observation.submission, {})
            by_judge.setdefault(observation.judge, set()).add(observation.letter)
    return {
        submission: "flaky" if any(len(statuses) > 1 for statuses in by_judge.values()) else "rejudged"
        for submission, by_judge in letters.items()
        if len(set().union(*by_judge.values())) > 1
    }


def _share(letters: Sequence[str]) -> float | None:
    return letters.count(PASSED) / len(letters) if letters else None


def compare_sides(
    folders: Sequence[Path], policy: Policy, *, samples: bool = False
) -> tuple[Comparison, list[Side], list[CheckpointRuns]]:
    """The comparison, and the loaded runs for a page that shows the texts of tests.

    `samples`: a folder may hold several runs, which are samples of the same agent.
    """
    if len(folders) < 2:
        raise UsageError("one side alone; give two folders or more to compare: slop-code compare BASE OTHER")
    sides, checkpoints = read_sides(folders, policy, samples=samples)
    comparison = Comparison(
        slop_code=__version__,
        policy=str(policy),
        sides=[SideRuns(name=side.name, runs=list(side.runs), copies=_copies(side)) for side in sides],
        warnings=[
            *(
                f"{side.name}: {run} has the same submissions as another run, so it counts as no further sample"
                for side in sides
                for run in _copies(side)
            ),
            *(warning for side in sides for warning in _not_recorded_warnings(side, checkpoints)),
            *(warning for side in sides[1:] for warning in _other_tests_warnings(sides[0], side, checkpoints)),
        ],
        unreadable=[message for side in sides for message in side.unreadable],
        pairs=[compare_pair(sides[0], other, checkpoints) for other in sides[1:]],
    )
    return comparison, sides, checkpoints


def by_named_policies(
    comparison: Comparison, sides: Sequence[Side], checkpoints: Sequence[CheckpointRuns]
) -> Iterator[Comparison]:
    """The comparison itself, and the same by each named policy. Policies with equal verdicts share their pairs."""
    pairs = {_verdicts(checkpoints): comparison.pairs}
    yield comparison
    for policy in NAMED_POLICIES:
        if policy == comparison.policy:
            continue
        judged = [runs.by_policy(policy) for runs in checkpoints]
        key = _verdicts(judged)
        if key not in pairs:
            pairs[key] = [compare_pair(sides[0], other, judged) for other in sides[1:]]
        yield comparison.model_copy(update={"policy": str(policy), "pairs": pairs[key]})


def _verdicts(checkpoints: Sequence[CheckpointRuns]) -> tuple[str, ...]:
    return tuple(runs.verdicts for runs in checkpoints)


def compare_pair(base: Side, other: Side, checkpoints: Sequence[CheckpointRuns]) -> PairComparison:
    problems = [{runs.problem for runs in checkpoints if _has(side, runs)} for side in (base, other)]
    both = problems[0] & problems[1]
    common = [runs for runs in checkpoints if runs.problem in both and (_has(base, runs) or _has(other, runs))]
    tests = [change for runs in common for change in _test_changes(runs, base, other)]
    test_counts = Counter((test.problem, test.checkpoint, test.change) for test in tests)
    changes = with_p([_checkpoint_change(runs, base, other, test_counts) for runs in common], common, (base, other))
    significance, no_significance = significance_of(base, other, common)
    return PairComparison(
        base=base.name,
        other=other.name,
        changed_checkpoints=_count_changes(change.change for change in changes),
        changed_tests=_count_changes(test.change for test in tests),
        significance=significance,
        no_significance=no_significance,
        other_judge=_other_judge(changes, common, [*base.run_numbers, *other.run_numbers]),
        only_base=sorted(problems[0] - both),
        only_other=sorted(problems[1] - both),
        no_verdicts=[record for runs in common for side in (base, other) for record in _no_verdicts(runs, side)],
        checkpoints=changes,
        tests=tests,
    )


def _has(side: Side, runs: CheckpointRuns) -> bool:
    return any(runs.by_run[number] is not ABSENT_CHECKPOINT for number in side.run_numbers)


def _observations(letters: str, runs: CheckpointRuns, side: Side) -> list[ObservedStatus]:
    """If the digest of a run's tests is unknown, its submission counts as different from all others."""
    observations = []
    for number in side.run_numbers:
        if letters[number] != ABSENT:
            judge = runs.by_run[number].judge
            submission = runs.by_run[number].submission if judge.tests else None
            observations.append(ObservedStatus(letters[number], submission, judge))
    return observations


def _test_changes(runs: CheckpointRuns, base: Side, other: Side) -> Iterator[TestChange]:
    """Nothing is yielded where a side has no verdict on the checkpoint."""
    if not all(_observations(runs.verdicts, runs, side) for side in (base, other)):
        return
    for (file, name), row in runs.tests.items():
        letters = row.decode("ascii")
        if letters == letters[0] * len(letters):  # nearly all tests of nearly all runs
            continue
        observed = [_observations(letters, runs, side) for side in (base, other)]
        if change := change_of(*observed):
            yield TestChange(
                problem=runs.problem,
                checkpoint=runs.checkpoint,
                file_path=file,
                id=name,
                group_type=runs.groups[file, name],
                change=change,
                base=_count_statuses(observed[0]),
                other=_count_statuses(observed[1]),
            )


def _count_statuses(observations: Sequence[ObservedStatus]) -> dict[Status, int]:
    counts = Counter(observation.letter for observation in observations)
    return {status: counts[letter] for letter, status in STATUSES.items() if counts[letter]}


def _checkpoint_change(
    runs: CheckpointRuns, base: Side, other: Side, test_counts: Counter[tuple[str, str, Change]]
) -> CheckpointChange:
    observed = [_observations(runs.verdicts, runs, side) for side in (base, other)]
    verdicts = [
        Verdicts(passed=sum(observation.letter == PASSED for observation in side), runs=len(side)) for side in observed
    ]
    return CheckpointChange(
        problem=runs.problem,
        checkpoint=runs.checkpoint,
        base=verdicts[0],
        other=verdicts[1],
        change=change_of(*observed) if all(observed) else None,
        tests={kind: test_counts[runs.problem, runs.checkpoint, kind] for kind in get_args(Change)},
    )


def _no_verdicts(runs: CheckpointRuns, side: Side) -> list[NoVerdict]:
    reasons = [(run, runs.by_run[number].reason) for run, number in zip(side.runs, side.run_numbers, strict=True)]
    names = {"side": side.name, "problem": runs.problem, "checkpoint": runs.checkpoint}
    return [NoVerdict(run=run, reason=reason, **names) for run, reason in reasons if reason is not None]


def _other_judge(
    changes: Sequence[CheckpointChange], checkpoints: Sequence[CheckpointRuns], numbers: Sequence[int]
) -> list[str]:
    """Labels of the judge's inputs that differ, over all checkpoints where this may have changed a status."""
    judges_by_checkpoint = [
        {runs.by_run[number].judge for number in numbers if runs.by_run[number].passed is not None}
        for change, runs in zip(changes, checkpoints, strict=True)
        if change.change == "rejudged" or change.tests["rejudged"]
    ]
    different = {
        name
        for judges in judges_by_checkpoint
        for name in JudgeInputs._fields
        if len({getattr(judge, name) for judge in judges}) > 1
    }
    return [JUDGE_INPUT_LABELS[name] for name in JudgeInputs._fields if name in different]


def _count_changes(changes: Iterable[Change | None]) -> dict[Change, int]:
    counts = Counter(changes)
    return {kind: counts[kind] for kind in get_args(Change)}


def _copies(side: Side) -> list[str]:
    return [run for run, number in zip(side.runs, side.run_numbers, strict=True) if number in side.copies]


def _not_recorded_warnings(side: Side, checkpoints: Sequence[CheckpointRuns]) -> Iterator[str]:
    if any(not runs.by_run[number].recorded for runs in checkpoints for number in side.run_numbers):
        yield (
            f"{side.name}: evaluated by the SlopCodeBench runner; submissions, tests, environment and isolation are "
            "not recorded, so a test may differ because of them"
        )


def _other_tests_warnings(base: Side, other: Side, checkpoints: Sequence[CheckpointRuns]) -> Iterator[str]:
    """Statuses are comparable only where the tests are the same."""
    tests = [(runs, _tests_of(runs, base), _tests_of(runs, other)) for runs in checkpoints]
    labels = [
        f"{runs.problem}/{runs.checkpoint}" for runs, first, second in tests if first and second and first != second
    ]
    if labels:
        yield f"{base.name} and {other.name} have other tests at {first_names(labels, MAX_LISTED)}"


def _tests_of(runs: CheckpointRuns, side: Side) -> set[str]:
    return {tests for number in side.run_numbers if (tests := runs.by_run[number].judge.tests)}
