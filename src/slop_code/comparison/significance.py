"""Whether sides of several runs differ by more than chance.

The unit is the run: checkpoints of one run build on each other and are not independent.
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


def with_p(checkpoints: Sequence[CheckpointChange]) -> list[CheckpointChange]:
    """Where each side has two verdicts or more: Fisher's exact test, with Holm's correction over all of these."""
    ps = [_p(one) for one in checkpoints]
    corrected = iter(holm([p for p in ps if p is not None]))
    return [
        one.model_copy(update={"p": p, "p_adjusted": None if p is None else next(corrected)})
        for one, p in zip(checkpoints, ps, strict=True)
    ]


def _p(one: CheckpointChange) -> float | None:
    if min(one.base.runs, one.other.runs) < 2:
        return None
    return fisher(one.base.passed, one.base.runs, one.other.passed, one.other.runs)


def significance_of(
    base: Side, other: Side, sheets: Sequence[CheckpointRuns]
) -> tuple[Significance | None, str | None]:
    """Of what every run has a verdict on; or why nothing can be said."""
    if single := [side.name for side in (base, other) if len(side.runs) < 2]:
        are = f"{single[0]} is one run" if len(single) == 1 else f"{single[0]} and {single[1]} are one run each"
        return None, f"{are}: how far runs differ by chance is not known; compare folders of two runs or more"
    places = [*base.places, *other.places]
    partly = {id(sheet) for sheet in sheets if any(sheet.seen[place].passed is None for place in places)}
    whole = [sheet for sheet in sheets if id(sheet) not in partly]
    if not whole:
        return None, "no checkpoint has a verdict in every run; evaluate what has none again"
    unsure = {sheet.problem for sheet in sheets if id(sheet) in partly}
    problems: dict[str, list[CheckpointRuns]] = {}
    for sheet in whole:
        if sheet.problem not in unsure:
            problems.setdefault(sheet.problem, []).append(sheet)

    def passed(place: int) -> int:
        return sum(sheet.seen[place].passed is True for sheet in whole)

    def solved(place: int) -> int:
        return sum(all(sheet.seen[place].passed for sheet in held) for held in problems.values())

    return Significance(
        smallest_p=smallest_p(len(base.runs), len(other.runs)),
        checkpoints=_difference(base, other, len(whole), passed),
        problems=_difference(base, other, len(problems), solved) if problems else None,
    ), None


def _difference(base: Side, other: Side, tasks: int, count: Callable[[int], int]) -> Difference:
    counts = [[count(place) for place in side.places] for side in (base, other)]
    found = permutation_test(*counts, seed=SEED)
    return Difference(
        tasks=tasks,
        base=statistics.fmean(counts[0]) / tasks,
        other=statistics.fmean(counts[1]) / tasks,
        p=found.p,
        arrangements=found.arrangements,
        seed=found.seed,
    )
