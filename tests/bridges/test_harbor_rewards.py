"""Rewards for Harbor, and the verifier where Harbor is not installed."""

from __future__ import annotations

import importlib
import importlib.util

import pytest

from slop_code import InfrastructureError, UsageError
from slop_code.bridges.harbor_rewards import harbor_rewards
from slop_code.evaluation.reward_values import refused_rewards, rewards_of
from tests.factories import result

KEYS = ["reward", "strict", "isolated", "core", "pass_rate", "solved"]


@pytest.mark.parametrize("tests", ["+", "+-", "-"])
def test_every_result_has_the_same_keys(tests):
    """Harbor counts a key that one of several steps or trials lacks as 0."""
    rewards = harbor_rewards(rewards_of(result(tests)), 0.5, group_rates=False)
    assert list(rewards) == KEYS
    assert rewards["reward"] == rewards["strict"] == float("-" not in tests)
    assert rewards["pass_rate"] == tests.count("+") / len(tests)
    assert rewards["solved"] == 0.5


def test_rates_of_groups_come_only_where_they_are_asked_for():
    assert {*harbor_rewards(rewards_of(result("+")), 1.0, group_rates=True)} == {*KEYS, "core_rate"}


def test_a_refused_workspace_has_the_same_keys_and_0_for_each():
    assert harbor_rewards(refused_rewards(), 0.0, group_rates=False) == dict.fromkeys(KEYS, 0)


def test_an_infrastructure_failure_is_no_reward():
    with pytest.raises(InfrastructureError, match="the disk is full"):
        rewards_of(result("+", infrastructure_failure_reason="the disk is full"))


@pytest.mark.skipif(importlib.util.find_spec("harbor") is not None, reason="Harbor is installed")
def test_without_harbor_the_verifier_says_what_to_install():
    with pytest.raises(UsageError, match=r"pip install 'slop-code\[harbor\]'"):
        importlib.import_module("slop_code.bridges.harbor")
