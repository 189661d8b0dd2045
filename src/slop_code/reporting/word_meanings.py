"""Meanings of the words in results: policies, rates, groups, and chances over several runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import RatePolicy, named_meanings, policy_meaning

if TYPE_CHECKING:
    from collections.abc import Iterable

GROUP_MEANINGS = {
    GroupType.CORE: "what the checkpoint has to do above all",
    GroupType.FUNCTIONALITY: "further functions of the checkpoint",
    GroupType.ERROR: "how the checkpoint treats errors and edge cases",
    GroupType.REGRESSION: "tests of earlier checkpoints, which new code must not break",
}
CHANCE_MEANINGS = {
    "pass@k": "chance that at least one of k runs of the agent solves a checkpoint",
    "pass^k": "chance that all of k runs of the agent solve a checkpoint",
}
CHANGE_MEANINGS = {
    "broke": "tests that passed at the checkpoint before, and do not pass now",
    "recovered": "tests that did not pass at the checkpoint before, and pass now",
}
TERM_MEANINGS = {
    "policy": "rule by which the tests of a checkpoint decide whether it passed",
    "missing": "checkpoints without a verdict, which count as not solved",
    "sample": "run of an agent; runs with the same submissions are one sample",
    "erosion": "share of the mass of the code (complexity times the square root of the source lines) that lies in "
    "functions of cyclomatic complexity above 10",
    "verbosity": "share of the source lines that clones, rules or the structure flag",
}


def page_meanings(terms: Iterable[str]) -> list[tuple[str, str]]:
    """As the pages list them. `terms` are further words of the page."""
    groups = [(f"group {group}", meaning) for group, meaning in GROUP_MEANINGS.items()]
    further = [(term, TERM_MEANINGS[term]) for term in terms]
    return [*further, *named_meanings(), *groups, *CHANGE_MEANINGS.items(), *CHANCE_MEANINGS.items()]


def rates_meaning() -> str:
    """One line below the rates of a run."""
    return "; ".join(f"{policy}: {policy_meaning(policy)}" for policy in RatePolicy)


def chances_meaning() -> str:
    """One line below pass@k and pass^k."""
    return "; ".join(f"{name}: {meaning}" for name, meaning in CHANCE_MEANINGS.items())
