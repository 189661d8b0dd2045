"""Pass policies: seven names, and expressions over the groups."""

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


Policy = PassPolicy | Expression
"""Both are strings: the text that the user gave."""

_RULES: dict[PassPolicy, tuple[str, frozenset[GroupType]]] = {
    PassPolicy.ANY: ("any", _EVERY),
    PassPolicy.ANY_CASE: ("any", _EVERY),
    PassPolicy.ALL_CASES: ("all", _EVERY),
    PassPolicy.ALL_NON_ERROR_CASES: ("all", _EVERY - {GroupType.ERROR}),
    PassPolicy.CORE_CASES: ("all", _CORE),
    PassPolicy.ANY_CORE_CASES: ("any", _CORE),
    PassPolicy.ALL_CORE_CASES: ("all", _CORE),
}


def parse_policy(text: str) -> Policy:
    """Raises UsageError with the position of an error in an expression."""
    check_type("policy", text, (str,), "the name of a policy or an expression")
    known = {policy.value: policy for policy in PassPolicy}
    return known.get(text.strip()) or Expression(text, list(known))


def as_policy(policy: Policy | str) -> Policy:
    return policy if isinstance(policy, PassPolicy | Expression) else parse_policy(policy)


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
    passed = sum(pass_counts.get(group, 0) for group in groups)
    total = sum(total_counts.get(group, 0) for group in groups)
    needed = total if quantity == "all" else 1
    return total > 0 and passed >= needed
