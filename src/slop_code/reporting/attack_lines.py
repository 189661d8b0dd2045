"""Results of `doctor --attacks`, as lines and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from slop_code.attacks.attack import AttackKind
from slop_code.attacks.trial import AttackState
from slop_code.reporting.text import one_line, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.attacks.trial import AttackOutcome
    from slop_code.reporting.terminal import StyledLine

# Only what the short corpus tries.
ABOUT = {
    AttackKind.CONFIGURATION: "tests and settings that a submission brings along",
    AttackKind.STARTUP: "files that an interpreter loads by itself",
    AttackKind.REPORTS: "expected outputs, overwritten",
    AttackKind.PROCESSES: "the judge's processes, killed or looked into",
    AttackKind.SECRETS: "expected outputs, read",
    AttackKind.LINKS: "links to what is hidden",
    AttackKind.TREES: "odd names",
    AttackKind.LEFTOVERS: "files outside, and processes and ports that outlive an evaluation",
    AttackKind.EXHAUSTION: "processes, memory and disk, used up",
    AttackKind.OUTPUT: "results that are printed and not earned",
    AttackKind.NETWORK: "services of the host, reached",
}
STATE_TEXTS = {AttackState.HELD: "held", AttackState.BROKE_THROUGH: "GOT THROUGH", AttackState.NOT_TRIED: "not tried"}
STYLES = {AttackState.HELD: "green", AttackState.BROKE_THROUGH: "bold red", AttackState.NOT_TRIED: "yellow"}
WIDTH = max(map(len, STATE_TEXTS.values()))
KIND_WIDTH = max(map(len, AttackKind))


def attack_line(outcome: AttackOutcome) -> str:
    reason = flatten(outcome.not_tried or "; ".join(observation.detail for observation in outcome.observations))
    goal = one_line(outcome.attack.goal)
    because = f": {reason}" if reason else ""
    return f"{STATE_TEXTS[outcome.state]:{WIDTH}}  {outcome.attack.kind:{KIND_WIDTH}}  {goal}{because}"


def flatten(text: str) -> str:
    """One line of text that a container engine or a tool wrote."""
    return one_line(" ".join(text.split()))


def state_of(outcomes: Sequence[AttackOutcome]) -> AttackState:
    """State of several attacks together: held only if each of them was."""
    states = {outcome.state for outcome in outcomes}
    return next(
        state for state in (AttackState.BROKE_THROUGH, AttackState.NOT_TRIED, AttackState.HELD) if state in states
    )


def by_kind(outcomes: Sequence[AttackOutcome]) -> Iterator[tuple[AttackKind, AttackState]]:
    for kind in AttackKind:
        if of_kind := [outcome for outcome in outcomes if outcome.attack.kind is kind]:
            yield kind, state_of(of_kind)


def summary(environment: str, outcomes: Sequence[AttackOutcome]) -> Iterator[StyledLine]:
    """A line for each kind of attack, and the totals."""
    words = {
        AttackState.HELD: "is held",
        AttackState.BROKE_THROUGH: "is NOT held",
        AttackState.NOT_TRIED: "is not known",
    }
    width = max(map(len, words.values()))
    for kind, state in by_kind(outcomes):
        yield f"{words[state]:{width}}  {ABOUT[kind]}", STYLES[state]
    counts = Counter(outcome.state for outcome in outcomes)
    numbers = ", ".join(f"{counts[state]} {state}" for state in AttackState)
    yield f"{one_line(environment)}: {plural(len(outcomes), 'attack')}: {numbers}", "bold"


def as_json(environment: str, outcomes: Sequence[AttackOutcome]) -> dict[str, Any]:
    return {
        "environment": environment,
        "kinds": {kind.value: state.value for kind, state in by_kind(outcomes)},
        "attacks": [
            {
                "name": outcome.attack.name,
                "kind": outcome.attack.kind.value,
                "goal": outcome.attack.goal,
                "state": outcome.state.value,
                "observations": [
                    {"effect": observation.effect.value, "detail": observation.detail}
                    for observation in outcome.observations
                ],
                "not_tried": outcome.not_tried or None,
            }
            for outcome in outcomes
        ],
    }
