"""Rewards of a result: the numbers that trainers and other benchmarks take from an evaluation."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import RatePolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slop_code.evaluation.report import CorrectnessResults


def rate_name(group: GroupType) -> str:
    return f"{group.lower()}_rate"


PASS_RATE = "pass_rate"
CHECKPOINT_REWARDS: tuple[str, ...] = (*(policy.value for policy in RatePolicy), PASS_RATE)
"""The rewards that every checkpoint has."""

REWARD_NAMES: tuple[str, ...] = (*CHECKPOINT_REWARDS, *map(rate_name, GroupType))
"""All names that rewards may have; a group without tests has no rate."""


def rewards_of(results: CorrectnessResults) -> dict[str, float]:
    """1 or 0 for each of `strict`, `isolated` and `core`; the share of tests that passed, of all and of each group.

    `pass_rate` is that of all tests, `core_rate` and so on are those of the groups that have tests. A part of the tests
    has rates alone. Raises InfrastructureError where there is no verdict, which is no reward of 0.
    """
    if results.infrastructure_failure:
        raise InfrastructureError(results.infrastructure_failure_reason or "no reason")
    policies = {} if results.partial else {policy.value: float(results.passes(policy)) for policy in RatePolicy}
    passed, total = results.pass_counts, results.total_counts
    rates = {rate_name(group): passed.get(group, 0) / count for group, count in total.items() if count}
    return policies | {PASS_RATE: sum(passed.values()) / max(1, sum(total.values()))} | rates


def refused_rewards() -> dict[str, float]:
    """Of a submission that cannot be read: 0 for everything, as an agent could cancel a bad score otherwise."""
    return dict.fromkeys(REWARD_NAMES, 0.0)


def mean_rewards(checkpoints: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Every reward over the checkpoints that have it, and NaN if none has: the names are the same for any problem."""
    values = {name: [rewards[name] for rewards in checkpoints if name in rewards] for name in REWARD_NAMES}
    return {name: fmean(numbers) if numbers else math.nan for name, numbers in values.items()}
