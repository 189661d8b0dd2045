import itertools
import math
from fractions import Fraction

import pytest

from slop_code.runs.statistics import (
    MAX_ARRANGEMENTS,
    fisher,
    holm,
    mean_bounds,
    pass_at_k,
    pass_hat_k,
    permutation_test,
    slope,
    smallest_p,
    t_quantile,
    usual_k,
    wilson,
)


@pytest.mark.parametrize("runs", range(1, 8))
def test_pass_at_k_is_the_share_of_draws_with_a_pass(runs):
    for passed, k in itertools.product(range(runs + 1), range(1, runs + 1)):
        draws = list(itertools.combinations(range(runs), k))
        lucky = sum(any(run < passed for run in draw) for draw in draws)
        assert pass_at_k(runs, passed, k) == float(Fraction(lucky, len(draws)))


@pytest.mark.parametrize("runs", range(1, 8))
def test_pass_hat_k_is_the_share_of_draws_that_all_pass(runs):
    for passed, k in itertools.product(range(runs + 1), range(1, runs + 1)):
        draws = list(itertools.combinations(range(runs), k))
        all_pass = sum(all(run < passed for run in draw) for draw in draws)
        assert pass_hat_k(runs, passed, k) == float(Fraction(all_pass, len(draws)))


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], None),
        ([(1, 0.5)], None),
        ([(2, 0.5), (2, 0.75)], None),
        ([(1, 0.25), (2, 0.5)], 0.25),
        ([(1, 0.5), (3, 0.0)], -0.25),
        ([(1, 1.0), (2, 1.0), (3, 1.0)], 0.0),
        ([(1, 0.0), (2, 3.0), (3, 3.0)], 1.5),
    ],
)
def test_slope_is_that_of_least_squares(points, expected):
    assert slope(points) == expected


@pytest.mark.parametrize(
    ("runs", "passed", "k", "expected"),
    [
        (10_000, 1, 100, 0.01),
        (100_000, 3, 1, 0.00003),
        (100_000, 0, 100_000, 0.0),
        (100_000, 99_999, 2, 1.0),
        (3_000, 1, 1_500, 0.5),
    ],
)
def test_pass_at_k_of_many_runs_is_exact(runs, passed, k, expected):
    assert pass_at_k(runs, passed, k) == expected


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (0, []),
        (1, [1]),
        (2, [1, 2]),
        (4, [1, 2, 4]),
        (10, [1, 2, 5, 10]),
        (30, [1, 2, 5, 10, 25, 30]),
        (300, [1, 2, 5, 10, 25, 50, 100, 300]),
    ],
)
def test_usual_values_of_k_end_with_the_number_of_runs(runs, expected):
    assert usual_k(runs) == expected


@pytest.mark.parametrize(
    ("passed", "runs", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_as_published(passed, runs, low, high):
    """Newcombe (1998), Statistics in Medicine 17, 857-872, table I, method 3."""
    assert wilson(passed, runs) == pytest.approx((low, high), abs=0.00005)


@pytest.mark.parametrize("runs", [1, 2, 3, 10, 40])
def test_wilson_holds_the_shares_that_a_score_test_does_not_refuse(runs):
    for passed in range(runs + 1):
        low, high = wilson(passed, runs)
        assert low <= passed / runs <= high
        for bound in (low, high):
            distance = abs(passed / runs - bound)
            assert distance == pytest.approx(1.959964 * math.sqrt(bound * (1 - bound) / runs), abs=1e-6)
        assert wilson(runs - passed, runs) == pytest.approx((1 - high, 1 - low))


def between(freedom, t):
    """How much of Student's distribution lies between 0 and t: Simpson's rule over its density."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    steps = 600
    heights = [(1 + (t * step / steps) ** 2 / freedom) ** (-(freedom + 1) / 2) for step in range(steps + 1)]
    weighted = heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])
    return scale * weighted * t / steps / 3


@pytest.mark.parametrize("freedom", [*range(1, 36), 40, 60, 120, 1000, 100_000])
def test_t_quantile_leaves_the_right_share_outside(freedom):
    rounded = 0.000005 if freedom <= 30 else 0.0000005
    assert between(freedom, t_quantile(freedom)) == pytest.approx(0.475, abs=rounded)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([], None),
        ([0.5], None),
        ([0.4, 0.5, 0.6], (0.5 - 0.24841, 0.5 + 0.24841)),
        ([0.5, 0.5], None),  # no spread, no word on how sure it is
        ([0.0, 1.0], (0.0, 1.0)),
        ([0.0, 0.0, 0.3], (0.0, 0.1 + 0.43027)),
    ],
)
def test_bounds_of_a_mean_are_those_of_student(shares, expected):
    """By hand: 0.24841 is 4.3027 times 0.1 / sqrt(3), and 0.43027 is 4.3027 times sqrt(0.03 / 3)."""
    found = mean_bounds(shares)
    assert found == (expected if expected is None else pytest.approx(expected, abs=0.00001))


def dealt_by_hand(one, other):
    """Every way to deal the runs out anew, by the places they stand at, with fractions."""
    values = [*one, *other]
    indices = range(len(values))

    def apart(chosen):
        first = [values[index] for index in chosen]
        second = [values[index] for index in indices if index not in chosen]
        return abs(Fraction(sum(first), len(first)) - Fraction(sum(second), len(second)))

    found = apart(range(len(one)))
    deals = list(itertools.combinations(indices, len(one)))
    return float(Fraction(sum(apart(deal) >= found for deal in deals), len(deals)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([3], [5]),
        ([0, 0], [3, 3]),
        ([0, 1], [2, 3, 3]),
        ([1, 1, 1], [1, 1]),
        ([0, 2, 5, 5], [1, 3, 3]),
        ([9, 8, 7, 6], [5, 4, 3, 2]),
        ([2, 7, 1, 8, 2, 8], [1, 8, 2, 8, 4]),
    ],
)
def test_a_permutation_test_looks_at_every_deal(one, other):
    found = permutation_test(one, other)
    assert found.p == dealt_by_hand(one, other)
    assert (found.arrangements, found.seed) == (math.comb(len(one) + len(other), len(one)), None)
    assert permutation_test(other, one).p == found.p


@pytest.mark.e2e
def test_a_permutation_test_of_many_runs_draws_by_its_seed():
    """Of zeros and ones the exact p is Fisher's."""
    one, other = [1] * 10 + [0] * 10, [1] * 17 + [0] * 3
    found = permutation_test(one, other, seed=7)
    assert found == permutation_test(one, other, seed=7)
    assert (found.arrangements, found.seed) == (MAX_ARRANGEMENTS, 7)
    assert found.p == pytest.approx(fisher(10, 20, 17, 20), abs=0.005)
    assert permutation_test([0] * 20, [9] * 20).p == 1 / (MAX_ARRANGEMENTS + 1)  # never 0


@pytest.mark.parametrize("sizes", list(itertools.product(range(1, 6), repeat=2)), ids=str)
def test_fisher_adds_up_the_tables_that_are_no_likelier(sizes):
    runs, others = sizes
    for passed, other_passed in itertools.product(range(runs + 1), range(others + 1)):
        marks = [index < passed + other_passed for index in range(runs + others)]
        deals = [sum(deal) for deal in itertools.combinations(marks, runs)]
        unlikely = sum(deals.count(deal) <= deals.count(passed) for deal in deals)
        assert fisher(passed, runs, other_passed, others) == float(Fraction(unlikely, len(deals)))


@pytest.mark.parametrize(
    ("table", "p"),
    [
        ((3, 4, 1, 4), 34 / 70),  # the lady tasting tea
        ((4, 4, 0, 4), 2 / 70),
        ((1, 10, 11, 14), 0.002759),  # of 10 that study 1 is a man, of 14 that do not 11 are
        ((0, 3, 0, 5), 1.0),
    ],
)
def test_fisher_as_published(table, p):
    assert fisher(*table) == pytest.approx(p, abs=0.000001)


@pytest.mark.parametrize(
    ("ps", "expected"),
    [
        ([], []),
        ([0.2], [0.2]),
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.6, 0.5], [1.0, 1.0]),
        ([0.01, 0.01], [0.02, 0.02]),
        ([0.010, 0.011], [0.02, 0.02]),  # never below that of a smaller one
    ],
)
def test_p_values_are_adjusted_by_holm(ps, expected):
    assert holm(ps) == pytest.approx(expected)


@pytest.mark.parametrize("sizes", list(itertools.product(range(1, 5), repeat=2)), ids=str)
def test_the_smallest_p_is_that_of_the_most_extreme_runs(sizes):
    runs, others = sizes
    tables = itertools.product(range(runs + 1), range(others + 1))
    assert smallest_p(runs, others) == min(fisher(passed, runs, right, others) for passed, right in tables)
    assert smallest_p(runs, others) == min(
        permutation_test(values[:runs], values[runs:]).p for values in itertools.product((0, 1), repeat=runs + others)
    )


@pytest.mark.e2e
@pytest.mark.parametrize("sizes", [(8, 9), (12, 12), (3, 100)])
def test_where_arrangements_are_drawn_at_random_there_are_no_smaller_p(sizes):
    runs, others = sizes
    assert smallest_p(runs, others) == 1 / (MAX_ARRANGEMENTS + 1) <= permutation_test([0] * runs, [9] * others).p
