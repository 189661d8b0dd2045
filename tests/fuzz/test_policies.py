"""Policies: agreement with a second evaluator, written as simply as can be, and any text as a policy or an error."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import PassPolicy, parse_policy, passes
from slop_code.evaluation.policy_expression import Expression
from tests.fuzz.odd_input import answered, fuzzed, odd_text

GROUPS = [group.value.lower() for group in GroupType]
NAMES = [*GROUPS, "all"]
SIGNS = ["==", "!=", "<", "<=", ">", ">="]
PIECES = [*NAMES, *SIGNS, "and", "or", "not", "(", ")", "1", "0", "95%", ".5", "2", "core.passed", "all.failed",
          "error.total", "core.", ".", "=", "1.", "1e3", "AND", "Core", "-1", "%", "999999999"]  # fmt: skip

counts = st.fixed_dictionaries({group: st.tuples(st.integers(0, 4), st.integers(0, 4)) for group in GroupType})
shares = st.sampled_from(["0", "1", "0.5", ".25", "50%", "100%", "33.3 %", "0%"])
figures = st.tuples(st.sampled_from(NAMES), st.sampled_from(["passed", "failed", "total"])).map(".".join)
sides = st.one_of(
    st.tuples(st.sampled_from(NAMES), shares),
    st.tuples(shares, st.sampled_from(NAMES)),
    st.tuples(figures, st.integers(0, 20).map(str)),
    st.tuples(figures, st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)),
)
comparisons = st.tuples(sides, st.sampled_from(SIGNS)).map(lambda pair: ("compare", pair[1], *pair[0]))
trees: st.SearchStrategy[Any] = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)),
    ),
    max_leaves=6,
)


def written(tree: Any, upper: bool) -> str:
    """With parentheses only where they are needed, so that `not` before `and` before `or` is tried."""
    if tree[0] == "compare":
        return f"{tree[2]} {tree[1]} {tree[3]}"
    if tree[0] == "not":
        inner = written(tree[1], upper)
        return f"not {inner}" if tree[1][0] == "compare" else f"not ({inner})"
    parts = [f"({written(one, upper)})" if _weaker(one[0], tree[0]) else written(one, upper) for one in tree[1]]
    return f" {tree[0].upper() if upper else tree[0]} ".join(parts)


def _weaker(inner: str, outer: str) -> bool:
    order = ["or", "and", "not", "compare"]
    return order.index(inner) <= order.index(outer)


def value(word: str, found: dict[GroupType, tuple[int, int]]) -> Fraction | None:
    if word[0] in "0123456789.":
        return Fraction(word.rstrip(" %")) / (100 if word.endswith("%") else 1)
    name, _, count = word.partition(".")
    chosen = [pair for group, pair in found.items() if name in ("all", group.value.lower())]
    passed, total = sum(pair[0] for pair in chosen), sum(pair[1] for pair in chosen)
    if count:
        return Fraction({"passed": passed, "failed": total - passed, "total": total}[count])
    return Fraction(passed, total) if total else None


def says(tree: Any, found: dict[GroupType, tuple[int, int]]) -> bool | None:
    if tree[0] == "compare":
        left, right = value(tree[2], found), value(tree[3], found)
        if left is None or right is None:
            return None
        return {"==": left == right, "!=": left != right, "<": left < right, "<=": left <= right,
                ">": left > right, ">=": left >= right}[tree[1]]  # fmt: skip
    if tree[0] == "not":
        inner = says(tree[1], found)
        return None if inner is None else not inner
    known = [said for said in (says(one, found) for one in tree[1]) if said is not None]
    if not known:
        return None
    return all(known) if tree[0] == "and" else any(known)


def named(tree: Any) -> set[str]:
    if tree[0] == "compare":
        return {word.partition(".")[0] for word in tree[2:] if word[0] not in "0123456789."}
    return set().union(*map(named, tree[1] if isinstance(tree[1], list) else [tree[1]]))


@fuzzed(tree=trees, pairs=counts, upper=st.booleans())
def test_an_expression_holds_as_its_tree_says(tree: Any, pairs: dict[GroupType, tuple[int, int]], upper: bool) -> None:
    found = {group: (min(pair), max(pair)) for group, pair in pairs.items()}
    policy = parse_policy(written(tree, upper))
    passed, total = ({group: pair[index] for group, pair in found.items()} for index in (0, 1))
    names = named(tree)
    tests = sum(pair[1] for group, pair in found.items() if {group.value.lower(), "all"} & names)
    expected = tests > 0 and says(tree, found) is True
    assert passes(policy, passed, total, no_verdict=False) is expected
    assert passes(policy, passed, total, no_verdict=True) is False
    again = pickle.loads(pickle.dumps(policy))
    assert again == policy == parse_policy(str(policy))
    assert passes(again, passed, total, no_verdict=False) is expected


@fuzzed(
    text=st.one_of(st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join), odd_text, st.text(max_size=1100)),
    pairs=counts,
)
def test_any_text_is_a_policy_or_a_usage_error(text: str, pairs: dict[GroupType, tuple[int, int]]) -> None:
    policy = answered(lambda: parse_policy(text))
    if policy is None:
        return
    passed, total = ({group: sorted(pair)[index] for group, pair in pairs.items()} for index in (0, 1))
    assert passes(policy, passed, total, no_verdict=False) in (True, False)
    assert passes(policy, dict.fromkeys(passed, 0), dict.fromkeys(total, 0), no_verdict=False) is False
    assert parse_policy(str(policy)) == policy


@fuzzed(depth=st.integers(0, 200), word=st.sampled_from(["(", "not ", "not("]))
def test_deep_nesting_is_a_usage_error(depth: int, word: str) -> None:
    text = word * depth + "core == 1" + ")" * (word.count("(") * depth)
    policy = answered(lambda: parse_policy(text))
    assert isinstance(policy, Expression) is (depth * (2 if word == "not(" else 1) < 50)


@fuzzed(pairs=counts)
def test_named_policies_hold_by_their_rules(pairs: dict[GroupType, tuple[int, int]]) -> None:
    passed, total = ({group: sorted(pair)[index] for group, pair in pairs.items()} for index in (0, 1))
    rules = {
        "all-cases": all(passed[group] == total[group] for group in GroupType) and sum(total.values()) > 0,
        "any": sum(passed.values()) > 0,
        "core-cases": passed[GroupType.CORE] == total[GroupType.CORE] > 0,
        "any-core-cases": passed[GroupType.CORE] > 0,
    }
    rules |= {"any-case": rules["any"], "all-core-cases": rules["core-cases"]}
    others = [group for group in GroupType if group is not GroupType.ERROR]
    rules["all-non-error-cases"] = all(passed[one] == total[one] for one in others) and any(
        total[one] for one in others
    )
    for policy in PassPolicy:
        assert passes(policy, passed, total, no_verdict=False) is rules[policy.value]
