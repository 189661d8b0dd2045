"""How sides differ: pure functions from what was read to what is said."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from slop_code._version import __version__
from slop_code.comparison.load import ABSENT, LETTERS, NOTHING, STATUSES, Judge, read_sides
from slop_code.comparison.records import (
    Change,
    CheckpointChange,
    Comparison,
    NoVerdict,
    Pair,
    SideRuns,
    TestChange,
    Verdicts,
)
from slop_code.comparison.significance import significance_of, with_p
from slop_code.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from slop_code.comparison.load import CheckpointRuns, Seen, Side
    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.reports.raw_test import Status

PASSED = LETTERS["passed"]
SHOWN_PLACES = 5
JUDGE_WORDS = {
    "tests": "the tests",
    "config": "the problem's config",
    "environment": "the environment",
    "image": "the container image",
    "evaluation_version": "slop-code's rules or locked tools (evaluation_version)",
    "python": "the Python of the tests",
    "test_dependencies": "versions of test dependencies",
}


@dataclass(frozen=True, slots=True)
class Told:
    """One run's word on a test, or on a checkpoint."""

    letter: str
    submission: str | None
    judge: Judge


def change_of(base: Sequence[Told], other: Sequence[Told]) -> Change | None:
    """By the share of runs that passed. Runs of one submission that contradict each other say nothing: left out."""
    if not base or not other:
        return "came" if other else "went" if base else None
    doubts = _doubts([*base, *other])
    shares = [_share([one.letter for one in side if one.submission not in doubts]) for side in (base, other)]
    if shares[0] is not None and shares[1] is not None and shares[0] != shares[1]:
        return "gained" if shares[0] < shares[1] else "lost"
    if not doubts:
        return None
    return "flaky" if "flaky" in doubts.values() else "rejudged"


def _doubts(told: Iterable[Told]) -> dict[str | None, Change]:
    """Submissions that were told of differently: by the same judge, or only by different ones."""
    letters: dict[str, dict[Judge, set[str]]] = {}
    for one in told:
        if one.submission is not None:
            letters.setdefault(one.submission, {}).setdefault(one.judge, set()).add(one.letter)
    return {
        submission: "flaky" if any(len(found) > 1 for found in by_judge.values()) else "rejudged"
        for submission, by_judge in letters.items()
        if len(set().union(*by_judge.values())) > 1
    }


def _share(letters: Sequence[str]) -> float | None:
    return letters.count(PASSED) / len(letters) if letters else None


def compare_sides(folders: Sequence[Path], policy: Policy) -> tuple[Comparison, list[Side], list[CheckpointRuns]]:
    """With what was read, for those who want to see the texts too."""
    if len(folders) < 2:
        raise UsageError("one side alone; give two folders or more to compare: slop-code compare BASE OTHER")
    sides, sheets = read_sides(folders, policy)
    comparison = Comparison(
        slop_code=__version__,
        policy=str(policy),
        sides=[SideRuns(name=side.name, runs=list(side.runs)) for side in sides],
        warnings=[
            *(warning for side in sides for warning in _twice(side, sheets)),
            *(warning for side in sides[1:] for warning in _other_tests(sides[0], side, sheets)),
        ],
        pairs=[compare_pair(sides[0], other, sheets) for other in sides[1:]],
    )
    return comparison, sides, sheets


def compare_pair(base: Side, other: Side, sheets: Sequence[CheckpointRuns]) -> Pair:
    problems = [{sheet.problem for sheet in sheets if _has(side, sheet)} for side in (base, other)]
    both = problems[0] & problems[1]
    common = [sheet for sheet in sheets if sheet.problem in both and (_has(base, sheet) or _has(other, sheet))]
    tests = [change for sheet in common for change in _test_changes(sheet, base, other)]
    by_place = Counter((test.problem, test.checkpoint, test.change) for test in tests)
    checkpoints = with_p([_checkpoint_change(sheet, base, other, by_place) for sheet in common])
    significance, why_not = significance_of(base, other, common)
    return Pair(
        base=base.name,
        other=other.name,
        changed_checkpoints=_counted(one.change for one in checkpoints),
        changed_tests=_counted(test.change for test in tests),
        significance=significance,
        no_significance=why_not,
        other_judge=_other_judge(checkpoints, common, [*base.places, *other.places]),
        only_base=sorted(problems[0] - both),
        only_other=sorted(problems[1] - both),
        no_verdicts=[one for sheet in common for side in (base, other) for one in _no_verdicts(sheet, side)],
        checkpoints=checkpoints,
        tests=tests,
    )


def _has(side: Side, sheet: CheckpointRuns) -> bool:
    return any(sheet.seen[place] is not NOTHING for place in side.places)


def _told(letters: str, seen: Sequence[Seen], side: Side) -> list[Told]:
    places = [place for place in side.places if letters[place] != ABSENT]
    return [_said(letters[place], seen[place]) for place in places]


def _said(letter: str, seen: Seen) -> Told:
    """Where it is not known which tests there were, submissions are not taken for the same."""
    return Told(letter, seen.submission if seen.judge.tests else None, seen.judge)


def _test_changes(sheet: CheckpointRuns, base: Side, other: Side) -> Iterator[TestChange]:
    """Where a side has no verdict, no test of it says anything."""
    verdicts = sheet.verdicts
    if not all(_told(verdicts, sheet.seen, side) for side in (base, other)):
        return
    for (file, name), row in sheet.tests.items():
        letters = row.decode("ascii")
        if letters == letters[0] * len(letters):  # nearly all tests of nearly all runs
            continue
        told = [_told(letters, sheet.seen, side) for side in (base, other)]
        if change := change_of(*told):
            yield TestChange(
                problem=sheet.problem,
                checkpoint=sheet.checkpoint,
                file_path=file,
                id=name,
                group_type=sheet.groups[file, name],
                change=change,
                base=_by_status(told[0]),
                other=_by_status(told[1]),
            )


def _by_status(told: Sequence[Told]) -> dict[Status, int]:
    counted = Counter(one.letter for one in told)
    return {status: counted[letter] for letter, status in STATUSES.items() if counted[letter]}


def _checkpoint_change(
    sheet: CheckpointRuns, base: Side, other: Side, changed: Counter[tuple[str, str, Change]]
) -> CheckpointChange:
    told = [_told(sheet.verdicts, sheet.seen, side) for side in (base, other)]
    verdicts = [Verdicts(passed=sum(one.letter == PASSED for one in side), runs=len(side)) for side in told]
    return CheckpointChange(
        problem=sheet.problem,
        checkpoint=sheet.checkpoint,
        base=verdicts[0],
        other=verdicts[1],
        change=change_of(*told) if all(told) else None,
        tests={kind: changed[sheet.problem, sheet.checkpoint, kind] for kind in get_args(Change)},
    )


def _no_verdicts(sheet: CheckpointRuns, side: Side) -> list[NoVerdict]:
    found = [(run, sheet.seen[place].reason) for run, place in zip(side.runs, side.places, strict=True)]
    where = {"side": side.name, "problem": sheet.problem, "checkpoint": sheet.checkpoint}
    return [NoVerdict(run=run, reason=reason, **where) for run, reason in found if reason is not None]


def _other_judge(
    checkpoints: Sequence[CheckpointChange], sheets: Sequence[CheckpointRuns], places: Sequence[int]
) -> list[str]:
    """Only where it may have made a difference."""
    judged = [
        {sheet.seen[place].judge for place in places if sheet.seen[place].passed is not None}
        for checkpoint, sheet in zip(checkpoints, sheets, strict=True)
        if checkpoint.change == "rejudged" or checkpoint.tests["rejudged"]
    ]
    differ = {name for judges in judged for name in Judge._fields if len({getattr(one, name) for one in judges}) > 1}
    return [JUDGE_WORDS[name] for name in Judge._fields if name in differ]


def _counted(changes: Iterable[Change | None]) -> dict[Change, int]:
    counted = Counter(changes)
    return {kind: counted[kind] for kind in get_args(Change)}


def _twice(side: Side, sheets: Sequence[CheckpointRuns]) -> Iterator[str]:
    """Copies of one run are no samples."""
    known: dict[tuple[str | None, ...], str] = {}
    for run, place in zip(side.runs, side.places, strict=True):
        held = tuple(sheet.seen[place].submission for sheet in sheets)
        if any(held) and held in known:
            yield f"{side.name}: {known[held]} and {run} hold the same submissions: as samples they are one, not two"
        known.setdefault(held, run)


def _other_tests(base: Side, other: Side, sheets: Sequence[CheckpointRuns]) -> Iterator[str]:
    """What the tests say can only be compared where they are the same."""
    tests = [(sheet, [_tests_of(sheet, side) for side in (base, other)]) for sheet in sheets]
    places = [f"{sheet.problem}/{sheet.checkpoint}" for sheet, found in tests if all(found) and found[0] != found[1]]
    if places:
        more = f" and {len(places) - SHOWN_PLACES} more" if len(places) > SHOWN_PLACES else ""
        yield f"{base.name} and {other.name} have other tests at {', '.join(places[:SHOWN_PLACES])}{more}"


def _tests_of(sheet: CheckpointRuns, side: Side) -> set[str]:
    return {tests for place in side.places if (tests := sheet.seen[place].judge.tests)}
