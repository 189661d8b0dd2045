"""Rewards as Harbor reads them, apart from `harbor.py`, which cannot be imported without Harbor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.evaluation.policy import RatePolicy
from slop_code.evaluation.reward_values import CHECKPOINT_REWARDS

if TYPE_CHECKING:
    from collections.abc import Mapping


def harbor_rewards(rewards: Mapping[str, float], solved: float, group_rates: bool) -> dict[str, float]:
    """Every result has the same keys, as Harbor counts a key that one of several steps or trials lacks as 0.

    `reward` is the key that Harbor's tables, thresholds and uploads read.
    """
    fixed = {"reward": rewards[RatePolicy.STRICT], **{name: rewards[name] for name in CHECKPOINT_REWARDS}}
    return {**(rewards if group_rates else {}), **fixed, "solved": solved}
