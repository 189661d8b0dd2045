"""Results of `doctor --attacks`, as lines and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from slop_code.attacks.attack import Kind
from slop_code.attacks.short import State
from slop_code.reporting.text import one_line, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.attacks.short import Outcome
    from slop_code.reporting.terminal import StyledLine

# Only what the short corpus tries.
ABOUT = {
    Kind.CONFIGURATION: "tests and settings that a submission brings along",
    Kind.STARTUP: "files that an interpreter loads by itself",
    Kind.REPORTS: "expected outputs, overwritten",
    Kind.PROCESSES: "the judge's processes, killed or looked into",
    Kind.SECRETS: "expected outputs, read",
    Kind.LINKS: "links to what is hidden",
    Kind.TREES: "odd names",
    Kind.LEFTOVERS: "files outside, and processes and ports that outlive an evaluation",
    Kind.EXHAUSTION: "processes, memory and disk, used up",
    Kind.OUTPUT: "results that are printed and not earned",
    Kind.NETWORK: "services of the host, reached",
}
STATE_TEXTS = {State.HELD: "held", State.THROUGH: "GOT THROUGH", State.UNTRIED: "not tried"}
STYLES = {State.HELD: "green", State.THROUGH: "bold red", State.UNTRIED: "yellow"}
WIDTH = max(map(len, STATE_TEXTS.values()))
KIND_WIDTH = max(map(len, Kind))


def attack_line(outcome: Outcome) -> str:
    reason = flatten(outcome.untried or "; ".join(sight.what for sight in outcome.sights))
    goal = one_line(outcome.attack.goal)
    because = f": {reason}" if reason else ""
    return f"{STATE_TEXTS[outcome.state]:{WIDTH}}  {outcome.attack.kind:{KIND_WIDTH}}  {goal}{because}"


def flatten(text: str) -> str:
    """One line of text that a container engine or a tool wrote."""
    return one_line(" ".join(text.split()))


def state_of(outcomes: Sequence[Outcome]) -> State:
    """Of several attacks together: held only if each of them was."""
    states = {outcome.state for outcome in outcomes}
    return next(state for state in (State.THROUGH, State.UNTRIED, State.HELD) if state in states)


def by_kind(outcomes: Sequence[Outcome]) -> Iterator[tuple[Kind, State]]:
    for kind in Kind:
        if of_kind := [outcome for outcome in outcomes if outcome.attack.kind is kind]:
            yield kind, state_of(of_kind)


def summary(environment: str, outcomes: Sequence[Outcome]) -> Iterator[StyledLine]:
    """A line for each kind of attack, and the totals."""
    words = {State.HELD: "is held", State.THROUGH: "is NOT held", State.UNTRIED: "is not known"}
    width = max(map(len, words.values()))
    for kind, state in by_kind(outcomes):
        yield f"{words[state]:{width}}  {ABOUT[kind]}", STYLES[state]
    counts = Counter(outcome.state for outcome in outcomes)
    numbers = ", ".join(f"{counts[state]} {state}" for state in State)
    yield f"{one_line(environment)}: {plural(len(outcomes), 'attack')}: {numbers}", "bold"


def as_json(environment: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "environment": environment,
        "kinds": {kind.value: state.value for kind, state in by_kind(outcomes)},
        "attacks": [
            {
                "name": outcome.attack.name,
                "kind": outcome.attack.kind.value,
                "goal": outcome.attack.goal,
                "state": outcome.state.value,
                "seen": [{"effect": sight.effect.value, "what": sight.what} for sight in outcome.sights],
                "untried": outcome.untried or None,
            }
            for outcome in outcomes
        ],
    }
