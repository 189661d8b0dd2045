import pytest

from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import (
    PassPolicy,
    RatePolicy,
    named_meanings,
    parse_policy,
    pass_rate,
    passes,
    policy_meaning,
)
from tests.factories import counts

ALL = set(PassPolicy)
ANY = {PassPolicy.ANY, PassPolicy.ANY_CASE}
CORE = {PassPolicy.CORE_CASES, PassPolicy.ALL_CORE_CASES}
ANY_CORE = {PassPolicy.ANY_CORE_CASES}
NON_ERROR = {PassPolicy.ALL_NON_ERROR_CASES}


@pytest.mark.parametrize(
    ("passed", "total", "expected"),
    [
        # Core, Functionality, Error, Regression
        ((0, 0, 0, 0), (0, 0, 0, 0), set()),
        ((2, 1, 1, 3), (2, 1, 1, 3), ALL),
        ((2, 1, 0, 3), (2, 1, 1, 3), ALL - {PassPolicy.ALL_CASES}),
        ((2, 1, 1, 2), (2, 1, 1, 3), ANY | CORE | ANY_CORE),
        ((2, 0, 1, 3), (2, 1, 1, 3), ANY | CORE | ANY_CORE),
        ((1, 1, 1, 3), (2, 1, 1, 3), ANY | ANY_CORE),
        ((0, 1, 1, 3), (2, 1, 1, 3), ANY),
        ((0, 0, 1, 0), (2, 1, 1, 3), ANY),
        ((0, 0, 0, 1), (2, 1, 1, 3), ANY),
        ((0, 0, 0, 0), (2, 1, 1, 3), set()),
        ((0, 1, 0, 0), (0, 1, 0, 0), ALL - CORE - ANY_CORE),
        ((0, 0, 1, 0), (0, 0, 1, 0), ANY | {PassPolicy.ALL_CASES}),
        ((0, 0, 0, 0), (0, 0, 1, 0), set()),
        ((0, 0, 0, 2), (0, 0, 0, 2), ANY | NON_ERROR | {PassPolicy.ALL_CASES}),
    ],
)
def test_policies_hold_by_the_counts_of_groups(passed, total, expected):
    got = {policy for policy in PassPolicy if passes(policy, counts(*passed), counts(*total), False)}
    assert got == expected


@pytest.mark.parametrize("policy", PassPolicy)
def test_an_infrastructure_failure_fails_every_policy(policy):
    assert not passes(policy, counts(2, 1, 1, 3), counts(2, 1, 1, 3), True)


def test_names_of_the_policies():
    assert [policy.value for policy in PassPolicy] == [
        "any",
        "any-case",
        "all-cases",
        "all-non-error-cases",
        "core-cases",
        "any-core-cases",
        "all-core-cases",
    ]


@pytest.mark.parametrize(
    ("passed", "total", "rates"),
    [
        # Core, Functionality, Error, Regression; strict, isolated, core
        ((0, 0, 0, 0), (0, 0, 0, 0), (None, None, None)),
        ((2, 1, 1, 4), (2, 1, 1, 4), (1.0, 1.0, 1.0)),
        ((2, 1, 1, 0), (2, 1, 1, 4), (0.5, 1.0, 1.0)),
        ((1, 1, 0, 4), (2, 1, 1, 4), (0.75, 0.5, 0.5)),
        ((0, 0, 0, 3), (0, 0, 0, 4), (0.75, None, None)),
        ((0, 1, 0, 0), (0, 1, 0, 0), (1.0, 1.0, None)),
    ],
)
def test_a_checkpoint_is_solved_where_the_rate_is_one(passed, total, rates):
    given = counts(*passed), counts(*total)
    assert tuple(pass_rate(policy, *given) for policy in RatePolicy) == rates
    assert [passes(policy, *given, False) for policy in RatePolicy] == [rate == 1 for rate in rates]
    assert not any(passes(policy, *given, True) for policy in RatePolicy)


@pytest.mark.parametrize("name", ["strict", "isolated", "core"])
def test_the_names_of_rates_are_policies(name):
    assert parse_policy(f" {name} ") is RatePolicy(name)


@pytest.mark.parametrize("policy", [*PassPolicy, *RatePolicy])
def test_the_meaning_of_a_policy_is_its_condition(policy):
    """One failed test in each group in turn."""
    words = policy_meaning(policy)
    counted = {GroupType.CORE} if "Core" in words else {group for group in GroupType if f"group {group}" not in words}
    for group in GroupType:
        total = counts(2, 2, 2, 2)
        lacking = {**total, group: 1}
        assert passes(policy, lacking, total, False) is (group not in counted or words.startswith("at least one"))
    assert any(policy in names.split(", ") and meaning == words for names, meaning in named_meanings())
