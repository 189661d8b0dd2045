"""Pass policies, which are names or expressions over the groups, and pass rates."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from slop_code._arguments import check_type
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy_expression import Expression

if TYPE_CHECKING:
    from collections.abc import Mapping

_EVERY = frozenset(GroupType)
_CORE = frozenset({GroupType.CORE})


class PassPolicy(StrEnum):
    ANY = "any"
    ANY_CASE = "any-case"
    ALL_CASES = "all-cases"
    ALL_NON_ERROR_CASES = "all-non-error-cases"
    CORE_CASES = "core-cases"
    ANY_CORE_CASES = "any-core-cases"
    ALL_CORE_CASES = "all-core-cases"


class RatePolicy(StrEnum):
    """The policies whose rates a summary reports, by the names of SlopCodeBench: a checkpoint is solved at rate 1."""

    STRICT = "strict"
    """All tests of the checkpoint, those of earlier checkpoints included."""
    ISOLATED = "isolated"
    """All tests but those of the group Regression."""
    CORE = "core"


Policy = PassPolicy | RatePolicy | Expression
"""Both are strings: the text that the user gave."""

NAMED_POLICIES: tuple[PassPolicy | RatePolicy, ...] = (*PassPolicy, *RatePolicy)

_RULES: dict[PassPolicy | RatePolicy, tuple[str, frozenset[GroupType]]] = {
    PassPolicy.ANY: ("any", _EVERY),
    PassPolicy.ANY_CASE: ("any", _EVERY),
    PassPolicy.ALL_CASES: ("all", _EVERY),
    PassPolicy.ALL_NON_ERROR_CASES: ("all", _EVERY - {GroupType.ERROR}),
    PassPolicy.CORE_CASES: ("all", _CORE),
    PassPolicy.ANY_CORE_CASES: ("any", _CORE),
    PassPolicy.ALL_CORE_CASES: ("all", _CORE),
    RatePolicy.STRICT: ("all", _EVERY),
    RatePolicy.ISOLATED: ("all", _EVERY - {GroupType.REGRESSION}),
    RatePolicy.CORE: ("all", _CORE),
}


def parse_policy(text: str) -> Policy:
    """Raises UsageError with the position of an error in an expression."""
    check_type("policy", text, (str,), "the name of a policy or an expression")
    known: dict[str, Policy] = {policy.value: policy for policy in NAMED_POLICIES}
    return known.get(text.strip()) or Expression(text, list(known))


def as_policy(policy: Policy | str) -> Policy:
    return policy if isinstance(policy, PassPolicy | RatePolicy | Expression) else parse_policy(policy)


def policy_meaning(policy: PassPolicy | RatePolicy) -> str:
    """The condition of a policy in words: "every Core test passed"."""
    quantity, groups = _RULES[policy]
    [*left_out] = _EVERY - groups
    tests = "Core test" if groups == _CORE else f"test outside the group {left_out[0]}" if left_out else "test"
    return f"{'every' if quantity == 'all' else 'at least one'} {tests} passed"


def named_meanings() -> list[tuple[str, str]]:
    """The named policies with their conditions; those with the same condition together."""
    names: dict[str, list[str]] = {}
    for policy in NAMED_POLICIES:
        names.setdefault(policy_meaning(policy), []).append(policy)
    return [(", ".join(same), meaning) for meaning, same in names.items()]


def passes(
    policy: Policy,
    pass_counts: Mapping[GroupType, int],
    total_counts: Mapping[GroupType, int],
    no_verdict: bool,
) -> bool:
    """A policy over zero tests fails, and where there is no verdict every policy fails."""
    if no_verdict:
        return False
    if isinstance(policy, Expression):
        return policy.holds(pass_counts, total_counts)
    quantity, groups = _RULES[policy]
    passed, total = _sums(groups, pass_counts, total_counts)
    needed = total if quantity == "all" else 1
    return total > 0 and passed >= needed


def has_tests(policy: Policy, total_counts: Mapping[GroupType, int]) -> bool:
    """Whether a policy that requires groups has a test in one of them."""
    return isinstance(policy, Expression) or any(total_counts.get(group, 0) for group in _RULES[policy][1])


def pass_rate(
    policy: RatePolicy, pass_counts: Mapping[GroupType, int], total_counts: Mapping[GroupType, int]
) -> float | None:
    """Share of the policy's tests that passed; None without such tests."""
    passed, total = _sums(_RULES[policy][1], pass_counts, total_counts)
    return passed / total if total else None


def _sums(
    groups: frozenset[GroupType], pass_counts: Mapping[GroupType, int], total_counts: Mapping[GroupType, int]
) -> tuple[int, int]:
    passed, total = pass_counts.get, total_counts.get  # a summary needs many sums
    return sum([passed(group, 0) for group in groups]), sum([total(group, 0) for group in groups])
