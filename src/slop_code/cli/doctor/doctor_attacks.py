"""`slop-code doctor --attacks`: hostile submissions against the isolation of this machine."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from slop_code.attacks.attack import quick_attacks
from slop_code.attacks.trial import AttackOutcome, AttackState, slop_code_evaluator, try_attacks
from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import print_json, print_progress, print_step
from slop_code.errors import InfrastructureError
from slop_code.execution.cache import Cache
from slop_code.execution.environment import EnvironmentSpec, load_environment
from slop_code.execution.sandbox import sandbox_name
from slop_code.reporting.attack_lines import STYLES, as_json, attack_line, flatten, state_of, summary

if TYPE_CHECKING:
    from collections.abc import Sequence

EXITS = {
    AttackState.HELD: Exit.PASSED,
    AttackState.BROKE_THROUGH: Exit.NOT_PASSED,
    AttackState.NOT_TRIED: Exit.INFRASTRUCTURE,
}


def run_attacks(environments: Sequence[str], *, as_text: bool) -> int:
    specs = {name: load_environment(name) for name in dict.fromkeys(environments)}
    cache = Cache.default()
    outcomes = {name: _try(name, spec, cache, as_text=as_text) for name, spec in specs.items()}
    if not as_text:
        print_json([as_json(name, results) for name, results in outcomes.items()])
    return EXITS[state_of([outcome for results in outcomes.values() for outcome in results])]


def _try(name: str, spec: EnvironmentSpec, cache: Cache, *, as_text: bool) -> list[AttackOutcome]:
    """Each outcome is printed as soon as it is known."""
    from slop_code.reporting.terminal import ResultConsole, print_lines

    console, outcomes, corpus = ResultConsole(), [], quick_attacks()
    boxed = sandbox_name(spec) != "none"

    def print_line(text: str, style: str) -> None:
        if as_text:
            print_lines(console, [(text, style)])
            sys.stdout.flush()

    if sys.stderr.isatty():
        print_step(f"trying {len(corpus)} attacks in {name}, isolation: {sandbox_name(spec)}")
        print_step("judging an honest submission first")
    try:
        evaluator = slop_code_evaluator(spec, cache, print_progress)
        with contextlib.closing(try_attacks(corpus, evaluator, cache, boxed=boxed)) as tried:
            for outcome in tried:
                outcomes.append(outcome)
                print_line(attack_line(outcome), STYLES[outcome.state])
    except InfrastructureError as error:
        print_line(flatten(f"{name}: {error}"), STYLES[AttackState.NOT_TRIED])
        print_line("nothing was tried", "bold")
        return [AttackOutcome(attack, not_tried=str(error)) for attack in corpus]
    for text, style in summary(name, outcomes):
        print_line(text, style)
    return outcomes
