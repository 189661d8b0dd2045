"""Division of a checkpoint's tests among judge/subject pairs, and the reason why `parallel: auto` uses only one."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.evaluation.config import AUTO
from slop_code.evaluation.parallel.parallel_proof import PROOFS, is_proven
from slop_code.evaluation.parallel.test_durations import load_durations
from slop_code.evaluation.roster import (
    assign_pairs,
    max_pairs_for,
    results_may_depend_on_each_other,
    shared_network_reason,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from slop_code.evaluation.context import EvaluationContext
    from slop_code.evaluation.roster import Roster
    from slop_code.evaluation.staging import Staged

MIN_PAIR_S = 1.0
"""Seconds of tests for which it is worth it to start another pair."""

ASSUMED_TEST_S = 0.2
"""Duration of a test of which nothing is known, in the number of pairs."""


@dataclass(frozen=True, slots=True)
class DividedTests:
    roster: Roster
    serial_reason: str | None = None
    """Why one pair runs everything although config.yaml has `parallel: auto`."""


def divide_tests(
    context: EvaluationContext,
    staged: Staged,
    options: Sequence[str],
    *,
    max_pairs: int | None,
    seed: int | None,
    take_places: Callable[[int], int],
) -> DividedTests:
    """`max_pairs` is what the caller allows. `take_places` takes free places on processors, and returns their number.

    With a `seed`, the division is a random one.
    """
    problem, reason = context.problem, None
    # A fixed number of pairs divides by the number of tests alone, so that `problems check` can repeat a division.
    seconds = load_durations(context.cache, staged.digest) if problem.parallel == AUTO else {}
    if problem.parallel == AUTO:
        reason = _serial_reason(context, staged, options)
        pairs = 1 if reason else useful_pairs(staged.roster, seconds)
    else:
        pairs = max_pairs_for(problem, context.environment, options)
    allowed = min(pairs, max_pairs or pairs)
    taken = take_places(allowed)
    if problem.parallel == AUTO:
        reason = reason or why_one_pair(pairs, allowed, taken)
        allowed = max(1, taken)
    if seed is not None:
        drawn = random.Random(seed)
        seconds = {entry.nodeid: drawn.uniform(1, 10) for entry in staged.roster.entries}
    return DividedTests(assign_pairs(staged.roster, problem.unit, allowed, seconds), reason)


def _serial_reason(context: EvaluationContext, staged: Staged, options: Sequence[str]) -> str | None:
    if reason := shared_network_reason(context.environment):
        return reason
    if results_may_depend_on_each_other(options):
        return "with these pytest arguments tests may depend on each other"
    if not is_proven(context.problem, context.checkpoint.name, staged.digest, staged.inputs.config_digest):
        return f"{PROOFS} has no proof for these tests"
    return None


def why_one_pair(useful: int, allowed: int, taken: int) -> str | None:
    """The reason why there is only one pair, where a proof allows more; None where there are more."""
    if useful == 1:
        return "the tests are too few or too short to be divided"
    if allowed == 1:
        return "only one pair was allowed at that time"
    return "no other processor was free" if taken <= 1 else None


def useful_pairs(roster: Roster, seconds: Mapping[str, float]) -> int:
    return pairs_worth(sum(seconds.get(entry.nodeid, ASSUMED_TEST_S) for entry in roster.entries))


def pairs_worth(seconds: float) -> int:
    """The largest number of pairs that have at least MIN_PAIR_S of these seconds each; at least 1."""
    return max(1, int(seconds / MIN_PAIR_S))
