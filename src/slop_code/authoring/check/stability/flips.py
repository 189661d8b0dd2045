"""Tests that pass in some runs of one and the same submission and not in others, and what decides it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from slop_code.authoring.check.stability.conditions import AS_IS, ConditionKind

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from slop_code.authoring.check.stability.conditions import Condition, ReferenceRun

MOST_AGAIN = 3
"""Conditions of one kind that are tried again."""


class Cause(StrEnum):
    CHANCE = "chance"
    SEED = "chance that the seed decides"
    ORDER = "the tests before it"
    LOAD = "load"
    PARALLEL = "other tests missing, or running at the same time"


def whole(runs: Sequence[ReferenceRun], test: str, kind: ConditionKind | None = None) -> list[ReferenceRun]:
    """Those with all tests that tell of this one."""
    return [
        run for run in runs if run.alone is None and test in run.passed and (kind is None or run.condition.kind is kind)
    ]


def steady(runs: Sequence[ReferenceRun], test: str) -> bool:
    """Whether nothing but the conditions makes it flip, as far as is known."""
    return len({run.passed[test] for run in whole(runs, test, ConditionKind.AS_IS)}) == 1


def usual(runs: Sequence[ReferenceRun], test: str) -> bool:
    """Whether it passes in most runs as it is; the first decides between halves."""
    passed = [run.passed[test] for run in whole(runs, test, ConditionKind.AS_IS)]
    return max(passed, key=passed.count)


def flips(runs: Sequence[ReferenceRun], test: str) -> list[ReferenceRun]:
    """The runs in which it does not end as usual."""
    return [run for run in whole(runs, test) if run.passed[test] != usual(runs, test)]


def flipping(runs: Sequence[ReferenceRun]) -> list[str]:
    """In the order of the first run, which has a verdict."""
    return [test for test in runs[0].passed if flips(runs, test)]


def to_try_again(runs: Sequence[ReferenceRun], tests: Collection[str]) -> list[Condition]:
    """The conditions of these tests' flips, one of each kind for each test, and one more run as it is."""
    chosen: dict[ConditionKind, list[Condition]] = {}
    for test in tests:
        found: dict[ConditionKind, Condition] = {}
        for run in flips(runs, test) if steady(runs, test) else ():
            found.setdefault(run.condition.kind, run.condition)
        for kind, condition in found.items():
            known = chosen.setdefault(kind, [])
            if condition not in known and len(known) < MOST_AGAIN:
                known.append(condition)
    again = [condition for conditions in chosen.values() for condition in conditions]
    return [AS_IS, *again] if again else []


def seed_of(runs: Sequence[ReferenceRun], test: str) -> int | None:
    """The first with which it flips."""
    return next((run.condition.seed for run in flips(runs, test) if run.condition.seed is not None), None)


def cause_of(runs: Sequence[ReferenceRun], test: str) -> Cause | None:
    """What the runs show; chance where nothing else explains them. None: it does not flip."""
    odd = flips(runs, test)
    if not odd:
        return None
    if not steady(runs, test):
        return Cause.CHANCE
    if seeds := {run.condition.seed for run in odd if run.condition.kind is ConditionKind.ORDER}:
        tried = [run for run in whole(runs, test, ConditionKind.ORDER) if run.condition.seed in seeds]
        return Cause.CHANCE if len({run.passed[test] for run in tried}) > 1 else _order_or_seed(runs, test)
    for kind, cause in ((ConditionKind.BUSY, Cause.LOAD), (ConditionKind.PARALLEL, Cause.PARALLEL)):
        if sum(run.condition.kind is kind for run in odd) > 1:
            return cause
    return Cause.CHANCE


def _order_or_seed(runs: Sequence[ReferenceRun], test: str) -> Cause:
    """By itself: what still flips with the seed and does not without has no need of the other tests."""
    normal = usual(runs, test)
    alone = {run.condition.seed: run.passed[test] for run in runs if run.alone == test and test in run.passed}
    seed = seed_of(runs, test)
    by_seed = alone.get(seed, normal) != normal and alone.get(None) == normal
    return Cause.SEED if by_seed else Cause.ORDER
