"""Statistics of pass counts: intervals, pass@k, pass^k, slopes, and tests for a difference between two sets of runs."""

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
MAX_ARRANGEMENTS = 20_000

_USUAL_K = (1, 2, 5, 10, 25, 50, 100)
_Z = statistics.NormalDist().inv_cdf(0.975)
_T = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip


def pass_at_k(runs: int, passed: int, k: int) -> float:
    """The probability that at least one of `k` of these runs, drawn without replacement, passed.

    Integers until the final division, so that it is exact for any number of runs.
    """
    ways = math.comb(runs, k)
    return (ways - math.comb(runs - passed, k)) / ways


def pass_hat_k(runs: int, passed: int, k: int) -> float:
    """The probability that all of `k` of these runs, drawn without replacement, passed; written pass^k."""
    return math.comb(passed, k) / math.comb(runs, k)


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Least-squares slope of y over x; None from fewer than two different x."""
    if len({x for x, _ in points}) < 2:
        return None
    return statistics.linear_regression([x for x, _ in points], [y for _, y in points]).slope


def usual_k(runs: int) -> list[int]:
    return sorted({*(k for k in _USUAL_K if k <= runs), runs}) if runs else []


def wilson(passed: int, runs: int) -> Bounds:
    """Wilson's score interval, 95 %, for the share of runs that pass."""
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
    """Number of assignments compared: all of them, or a random sample."""
    seed: int | None
    """None where all were compared."""


def permutation_test(base: Sequence[int], other: Sequence[int], *, seed: int = 0) -> Permutation:
    """Two-sided: how often runs that are assigned to the sides anew differ in their means by as much or more.

    The values are integers, such as checkpoints passed, so that comparisons are exact.
    """
    values, size = [*base, *other], len(base)
    expected = size * sum(values)

    def distance(drawn: Sequence[int]) -> int:
        """Distance between the means, times both sizes: an integer."""
        return abs(len(values) * sum(drawn) - expected)

    observed = distance(base)
    if (ways := math.comb(len(values), size)) <= MAX_ARRANGEMENTS:
        far = sum(distance(drawn) >= observed for drawn in itertools.combinations(values, size))
        return Permutation(far / ways, ways, None)
    chance = random.Random(seed)
    far = sum(distance(chance.sample(values, size)) >= observed for _ in range(MAX_ARRANGEMENTS))
    return Permutation((far + 1) / (MAX_ARRANGEMENTS + 1), MAX_ARRANGEMENTS, seed)


def fisher(passed: int, runs: int, other_passed: int, other_runs: int) -> float:
    """Fisher's exact test, two-sided: all tables with the same sums that are no likelier than the observed table."""
    together = passed + other_passed

    def ways(count: int) -> int:
        return math.comb(runs, count) * math.comb(other_runs, together - count)

    possible = range(max(0, together - other_runs), min(runs, together) + 1)
    observed = ways(passed)
    unlikely = sum(weight for count in possible if (weight := ways(count)) <= observed)
    return unlikely / math.comb(runs + other_runs, together)


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's correction of p values, in the order given."""
    adjusted = [1.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = highest
    return adjusted


def smallest_p(runs: int, other_runs: int) -> float:
    """Smallest p value of a permutation test: with equal sizes the mirrored assignment differs as much."""
    ways = math.comb(runs + other_runs, runs)
    least = (2 if runs == other_runs else 1) / ways
    return least if ways <= MAX_ARRANGEMENTS else max(least, 1 / (MAX_ARRANGEMENTS + 1))
