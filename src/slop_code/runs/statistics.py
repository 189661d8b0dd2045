"""Estimates from several runs, and whether two sets of runs differ: pure functions over counts and shares."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Bounds = tuple[float, float]
MOST_ARRANGEMENTS = 20_000

_USUAL_K = (1, 2, 5, 10, 25, 50, 100)
_Z = statistics.NormalDist().inv_cdf(0.975)
_T = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip


def pass_at_k(runs: int, passed: int, k: int) -> float:
    """The chance that at least one of `k` of these runs, drawn without putting back, passed.

    Whole numbers until the one division, so that nothing is lost however many runs there are.
    """
    if not 0 <= passed <= runs or not 1 <= k <= runs:
        raise ValueError(f"no {k} of {runs} runs, of which {passed} passed")
    ways = math.comb(runs, k)
    return (ways - math.comb(runs - passed, k)) / ways


def usual_k(runs: int) -> list[int]:
    return sorted({*(k for k in _USUAL_K if k <= runs), runs}) if runs else []


def wilson(passed: int, runs: int) -> Bounds:
    """Wilson's score interval, 95 %, for the share of runs that pass."""
    if not 0 <= passed <= runs or runs == 0:
        raise ValueError(f"no {passed} of {runs} runs")
    square = _Z * _Z
    middle = passed + square / 2
    half = _Z * math.sqrt(passed * (runs - passed) / runs + square / 4)
    low = (middle - half) / (runs + square) if passed else 0.0
    high = (middle + half) / (runs + square) if passed < runs else 1.0
    return low, high


def mean_bounds(shares: Sequence[float]) -> Bounds | None:
    """Student's t interval, 95 %, for the mean of independent shares; none where they do not differ."""
    if len(set(shares)) < 2:
        return None
    mean = statistics.fmean(shares)
    half = t_quantile(len(shares) - 1) * statistics.stdev(shares) / math.sqrt(len(shares))
    return max(0.0, mean - half), min(1.0, mean + half)


def t_quantile(freedom: int) -> float:
    """Student's 97.5 % quantile: a table, then Cornish and Fisher's expansion, good to four places from there on."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = _Z
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


@dataclass(frozen=True, slots=True)
class Permutation:
    p: float
    arrangements: int
    """That were looked at: all of them, or so many at random."""
    seed: int | None
    """None where all were looked at."""


def permutation_test(one: Sequence[int], other: Sequence[int], *, seed: int = 0) -> Permutation:
    """Two-sided: how often runs dealt out anew to the two sides differ in their means by as much or more.

    Whole numbers, such as checkpoints passed, so that what is equal is equal.
    """
    if not one or not other:
        raise ValueError("no runs on a side")
    values, size = [*one, *other], len(one)
    expected = size * sum(values)

    def distance(dealt: Sequence[int]) -> int:
        """Between the means, times both sizes: whole."""
        return abs(len(values) * sum(dealt) - expected)

    found = distance(one)
    if (ways := math.comb(len(values), size)) <= MOST_ARRANGEMENTS:
        far = sum(distance(dealt) >= found for dealt in itertools.combinations(values, size))
        return Permutation(far / ways, ways, None)
    chance = random.Random(seed)
    far = sum(distance(chance.sample(values, size)) >= found for _ in range(MOST_ARRANGEMENTS))
    return Permutation((far + 1) / (MOST_ARRANGEMENTS + 1), MOST_ARRANGEMENTS, seed)


def fisher(passed: int, runs: int, other_passed: int, other_runs: int) -> float:
    """Fisher's exact test, two-sided: all tables with the same sums that are no likelier than this one."""
    if not (0 <= passed <= runs and 0 <= other_passed <= other_runs):
        raise ValueError(f"no {passed} of {runs} and {other_passed} of {other_runs} runs")
    together = passed + other_passed

    def ways(count: int) -> int:
        return math.comb(runs, count) * math.comb(other_runs, together - count)

    possible = range(max(0, together - other_runs), min(runs, together) + 1)
    here = ways(passed)
    unlikely = sum(found for count in possible if (found := ways(count)) <= here)
    return unlikely / math.comb(runs + other_runs, together)


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's correction: each as it counts among all of them, in the order they were given."""
    adjusted = [1.0] * len(ps)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = highest
    return adjusted


def smallest_p(runs: int, other_runs: int) -> float:
    """That a permutation test can come to: with equal numbers the opposite deal is as far apart."""
    ways = math.comb(runs + other_runs, runs)
    least = (2 if runs == other_runs else 1) / ways
    return least if ways <= MOST_ARRANGEMENTS else max(least, 1 / (MOST_ARRANGEMENTS + 1))
