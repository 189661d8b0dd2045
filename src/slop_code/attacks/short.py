"""The short version, tried on a user's own machine: one outcome after the other, and nothing is left behind."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.attacks.attack import SHORT, Attack, Kind, read_corpus
from slop_code.attacks.trial import HONEST, Evaluator, try_attack
from slop_code.attacks.world import lay_problem
from slop_code.errors import InfrastructureError, SlopCodeError
from slop_code.execution.cache import remove_tree

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from slop_code.attacks.seen import Sight
    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.cache import Cache

NO_BOX = "it sends signals, and without a box they would reach others"


class State(StrEnum):
    HELD = "held"
    THROUGH = "got through"
    UNTRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Outcome:
    attack: Attack
    sights: tuple[Sight, ...] = ()
    untried: str = ""
    """Why nothing is known."""

    @property
    def state(self) -> State:
        if self.untried:
            return State.UNTRIED
        return State.THROUGH if self.sights else State.HELD


def short_corpus(folder: Path = SHORT) -> Sequence[Attack]:
    found = read_corpus(folder)
    if missing := [kind for kind in Kind if kind not in {attack.kind for attack in found}]:
        raise InfrastructureError(f"{folder}: no attacks of {', '.join(missing)}; install slop-code anew")
    return found


def try_all(
    attacks: Iterable[Attack], evaluator: Evaluator, cache: Cache, *, boxed: bool
) -> Generator[Outcome, None, None]:
    """`boxed`: whether the evaluator keeps signals in.

    An evaluator that misjudges honest work tells nothing: that is an error, before anything is tried.
    """
    with _place(cache) as (folder, problem):
        honest = _tried(HONEST, evaluator, problem, folder)
        if trouble := honest.untried or "; ".join(sight.what for sight in honest.sights):
            raise InfrastructureError(f"an honest submission cannot be judged here: {trouble}")
        for attack in attacks:
            if attack.signals and not boxed:
                yield Outcome(attack, untried=NO_BOX)
            else:
                yield _tried(attack, evaluator, problem, folder)


def _tried(attack: Attack, evaluator: Evaluator, problem: ProblemConfig, folder: Path) -> Outcome:
    try:
        return Outcome(attack, try_attack(attack, evaluator, problem, folder))
    except (SlopCodeError, OSError) as error:
        return Outcome(attack, untried=str(error))


@contextlib.contextmanager
def _place(cache: Cache) -> Iterator[tuple[Path, ProblemConfig]]:
    folder = Path(tempfile.mkdtemp(prefix="slop-code-attacks-"))
    try:
        problem = lay_problem(folder / "lines")
        try:
            yield folder, problem
        finally:
            _forget(problem, cache)
    finally:
        remove_tree(folder)


def _forget(problem: ProblemConfig, cache: Cache) -> None:
    """The staged tests, which no other problem has: their secret is known by none."""
    name = "tests/expected/out.txt"
    secret = (problem.path / name).read_bytes()
    for file in (cache.root / "tests").glob(f"*/{name}"):
        with contextlib.suppress(OSError):
            if file.read_bytes() == secret:
                entry = file.parents[2]
                remove_tree(entry)
                entry.with_name(f".{entry.name}.lock").unlink(missing_ok=True)
