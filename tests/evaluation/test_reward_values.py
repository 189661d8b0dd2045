"""Rewards of a result, and of several checkpoints."""

from __future__ import annotations

import math

import pytest

from slop_code import InfrastructureError
from slop_code.evaluation.reward_values import REWARD_NAMES, mean_rewards, rewards_of
from tests.factories import result


def test_the_names_are_those_of_the_policies_and_of_the_rates_of_all_groups():
    rates = ("core_rate", "functionality_rate", "error_rate", "regression_rate")
    assert ("strict", "isolated", "core", "pass_rate", *rates) == REWARD_NAMES


def test_a_mean_is_over_the_checkpoints_that_have_the_reward():
    means = mean_rewards(
        [{"strict": 1.0, "core_rate": 1.0}, {"strict": 0.0, "core_rate": 0.5, "regression_rate": 0.25}]
    )
    assert (means["strict"], means["core_rate"], means["regression_rate"]) == (0.5, 0.75, 0.25)
    assert math.isnan(means["error_rate"])
    assert list(means) == list(REWARD_NAMES)


def test_a_pass_is_1_for_each_policy_and_each_group_with_tests():
    assert rewards_of(result("+")) == {"strict": 1.0, "isolated": 1.0, "core": 1.0, "pass_rate": 1.0, "core_rate": 1.0}


def test_the_pass_rate_is_the_share_of_all_tests():
    assert rewards_of(result("++-+"))["pass_rate"] == 0.75
    assert rewards_of(result(""))["pass_rate"] == 0


def test_an_infrastructure_failure_is_no_reward():
    with pytest.raises(InfrastructureError, match="the disk is full"):
        rewards_of(result("+", infrastructure_failure_reason="the disk is full"))


def test_a_part_of_the_tests_has_rates_alone():
    assert rewards_of(result("+", deselected=3)) == {"pass_rate": 1.0, "core_rate": 1.0}
