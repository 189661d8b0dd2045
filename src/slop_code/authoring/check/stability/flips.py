"""Tests that flip between runs of the same submission, and the causes."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from slop_code.authoring.check.stability.conditions import AS_IS, ConditionKind

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from slop_code.authoring.check.stability.conditions import Condition, ReferenceRun

MAX_REPEATED = 3
"""Conditions of a kind that are repeated."""


class Cause(StrEnum):
    CHANCE = "chance"
    SEED = "chance that the seed decides"
    ORDER = "the tests before it"
    LOAD = "load"
    PARALLEL = "other tests missing, or running at the same time"


def full_runs(runs: Sequence[ReferenceRun], test: str, kind: ConditionKind | None = None) -> list[ReferenceRun]:
    """Runs of all tests that have a result of this test."""
    return [
        run for run in runs if run.alone is None and test in run.passed and (kind is None or run.condition.kind is kind)
    ]


def is_steady(runs: Sequence[ReferenceRun], test: str) -> bool:
    """True where the test has the same result in every plain run."""
    return len({run.passed[test] for run in full_runs(runs, test, ConditionKind.AS_IS)}) == 1


def usual_result(runs: Sequence[ReferenceRun], test: str) -> bool:
    """The most frequent result in plain runs; the first run decides a tie."""
    passed = [run.passed[test] for run in full_runs(runs, test, ConditionKind.AS_IS)]
    return max(passed, key=passed.count)


def odd_runs(runs: Sequence[ReferenceRun], test: str) -> list[ReferenceRun]:
    """The runs in which the test has not its usual result."""
    return [run for run in full_runs(runs, test) if run.passed[test] != usual_result(runs, test)]


def flipping_tests(runs: Sequence[ReferenceRun]) -> list[str]:
    """In the order of the first run, which always has a verdict."""
    return [test for test in runs[0].passed if odd_runs(runs, test)]


def conditions_to_repeat(runs: Sequence[ReferenceRun], tests: Collection[str]) -> list[Condition]:
    """Conditions under which these tests flipped, at most one of each kind per test, after a plain run."""
    chosen: dict[ConditionKind, list[Condition]] = {}
    for test in tests:
        first: dict[ConditionKind, Condition] = {}
        for run in odd_runs(runs, test) if is_steady(runs, test) else ():
            first.setdefault(run.condition.kind, run.condition)
        for kind, condition in first.items():
            known = chosen.setdefault(kind, [])
            if condition not in known and len(known) < MAX_REPEATED:
                known.append(condition)
    again = [condition for conditions in chosen.values() for condition in conditions]
    return [AS_IS, *again] if again else []


def first_odd_seed(runs: Sequence[ReferenceRun], test: str) -> int | None:
    """The first seed with which the test flips."""
    return next((run.condition.seed for run in odd_runs(runs, test) if run.condition.seed is not None), None)


def cause_of(runs: Sequence[ReferenceRun], test: str) -> Cause | None:
    """Chance, where no condition explains the flips; None where the test does not flip."""
    odd = odd_runs(runs, test)
    if not odd:
        return None
    if not is_steady(runs, test):
        return Cause.CHANCE
    if seeds := {run.condition.seed for run in odd if run.condition.kind is ConditionKind.ORDER}:
        tried = [run for run in full_runs(runs, test, ConditionKind.ORDER) if run.condition.seed in seeds]
        return Cause.CHANCE if len({run.passed[test] for run in tried}) > 1 else _order_or_seed(runs, test)
    for kind, cause in ((ConditionKind.BUSY, Cause.LOAD), (ConditionKind.PARALLEL, Cause.PARALLEL)):
        if sum(run.condition.kind is kind for run in odd) > 1:
            return cause
    return Cause.CHANCE


def _order_or_seed(runs: Sequence[ReferenceRun], test: str) -> Cause:
    """A test that flips alone with the seed, and not without it, depends on the seed rather than on other tests."""
    normal = usual_result(runs, test)
    alone = {run.condition.seed: run.passed[test] for run in runs if run.alone == test and test in run.passed}
    seed = first_odd_seed(runs, test)
    by_seed = alone.get(seed, normal) != normal and alone.get(None) == normal
    return Cause.SEED if by_seed else Cause.ORDER
