"""Significance of the difference between two sides of several runs.

The unit is the run: checkpoints of a run build on each other and are not independent.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from slop_code.comparison.records import Difference, Significance
from slop_code.runs.statistics import fisher, holm, permutation_test, smallest_p

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slop_code.comparison.load import CheckpointRuns, Side
    from slop_code.comparison.records import CheckpointChange

SEED = 0


def with_p(
    checkpoints: Sequence[CheckpointChange], runs: Sequence[CheckpointRuns], sides: tuple[Side, Side]
) -> list[CheckpointChange]:
    """Adds p values where each side has two verdicts or more: Fisher's exact test with Holm's correction."""
    ps = [_p(*(_verdicts(by_run, side) for side in sides)) for by_run in runs]
    corrected = iter(holm([p for p in ps if p is not None]))
    return [
        checkpoint.model_copy(update={"p": p, "p_adjusted": None if p is None else next(corrected)})
        for checkpoint, p in zip(checkpoints, ps, strict=True)
    ]


def _verdicts(runs: CheckpointRuns, side: Side) -> list[bool]:
    verdicts = [runs.by_run[number].passed for number in side.samples]
    return [passed for passed in verdicts if passed is not None]


def _p(base: Sequence[bool], other: Sequence[bool]) -> float | None:
    if min(len(base), len(other)) < 2:
        return None
    return fisher(sum(base), len(base), sum(other), len(other))


def significance_of(
    base: Side, other: Side, checkpoints: Sequence[CheckpointRuns]
) -> tuple[Significance | None, str | None]:
    """The significance over checkpoints with a verdict in every run, or the reason why there is none."""
    if single := [side.name for side in (base, other) if len(side.samples) < 2]:
        are = f"{single[0]} is one run" if len(single) == 1 else f"{single[0]} and {single[1]} are one run each"
        return None, f"{are}: how far runs differ by chance is not known; compare folders of two runs or more"
    numbers = [*base.samples, *other.samples]
    complete: list[CheckpointRuns] = []
    problems: dict[str, list[CheckpointRuns]] = {}
    incomplete_problems: set[str] = set()
    for checkpoint in checkpoints:
        if any(checkpoint.by_run[number].passed is None for number in numbers):
            incomplete_problems.add(checkpoint.problem)
        else:
            complete.append(checkpoint)
            problems.setdefault(checkpoint.problem, []).append(checkpoint)
    if not complete:
        return None, "no checkpoint has a verdict in every run; evaluate those without a verdict again"
    solvable = [group for problem, group in problems.items() if problem not in incomplete_problems]

    def passed(number: int) -> int:
        return sum(checkpoint.by_run[number].passed is True for checkpoint in complete)

    def solved(number: int) -> int:
        return sum(all(checkpoint.by_run[number].passed for checkpoint in group) for group in solvable)

    return Significance(
        smallest_p=smallest_p(len(base.samples), len(other.samples)),
        checkpoints=_difference(base, other, len(complete), passed),
        problems=_difference(base, other, len(solvable), solved) if solvable else None,
    ), None


def _difference(base: Side, other: Side, tasks: int, count: Callable[[int], int]) -> Difference:
    counts = [[count(number) for number in side.samples] for side in (base, other)]
    permutation = permutation_test(*counts, seed=SEED)
    return Difference(
        tasks=tasks,
        base=statistics.fmean(counts[0]) / tasks,
        other=statistics.fmean(counts[1]) / tasks,
        p=permutation.p,
        arrangements=permutation.arrangements,
        seed=permutation.seed,
    )
