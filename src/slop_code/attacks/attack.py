"""Model of an attack: a hostile submission, its goal, and the effect by which success is recognised."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from slop_code.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CORPUS = Path(__file__).parent / "corpus"


class AttackKind(StrEnum):
    CONFIGURATION = "configuration"
    STARTUP = "startup"
    REPORTS = "reports"
    PROCESSES = "processes"
    SECRETS = "secrets"
    LINKS = "links"
    TREES = "trees"
    LEFTOVERS = "leftovers"
    EXHAUSTION = "exhaustion"
    OUTPUT = "output"
    NETWORK = "network"


class Effect(StrEnum):
    GAIN = "gain"
    """A test passes that the program does not earn. Attacks also use this to report that they got somewhere."""

    LOSS = "loss"
    """A test of honest work fails, or there is no verdict: the judge was disturbed."""

    CHANGED = "changed"
    """A file that does not belong to the submission was changed."""

    LEAKED = "leaked"
    """A secret of the host is in the evaluator's output."""

    LEFT = "left"
    """A process, a file, an open port or shared memory outlives the evaluation."""

    CONNECTED = "connected"
    """A service outside the boxes was reached."""

    POISONED = "poisoned"
    """The next evaluation, of another submission, has a different result."""

    FLOODED = "flooded"
    """The evaluator wrote more data than it may."""

    RAW = "raw"
    """A control sequence reaches a terminal, or markup a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    name: str
    kind: AttackKind
    goal: str
    does: Effect
    """The effect on an evaluator without any defence."""

    quick: bool = False
    """Whether `slop-code doctor --attacks` runs it."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Files laid over the base program; `cheat.py` is called at the start of every command."""

    build: str = ""
    """Python code, run in the submission's folder, for what a text file cannot hold (links, pipes, odd names)."""

    environment: Mapping[str, Any] = field(default_factory=dict)
    """Keys that override those of the environment, such as tighter limits."""

    unshown: str = ""
    """The reason why it cannot be shown to work on an evaluator without defences, or empty if it is shown."""

    @property
    def signals(self) -> bool:
        """Whether it sends signals to processes, and therefore runs only in a box."""
        return any("boxed()" in text for text in self.files.values())


def read_attack(path: Path) -> Attack:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    kind, does = AttackKind(path.parent.name), Effect(data.pop("does"))
    return Attack(name=path.stem, kind=kind, does=does, **data)


def read_corpus(folder: Path = CORPUS) -> Sequence[Attack]:
    """Attacks in the order of `AttackKind`, then by name."""
    order = list(AttackKind)
    attacks = [read_attack(path) for path in folder.glob("*/*.yaml")]
    return sorted(attacks, key=lambda attack: (order.index(attack.kind), attack.name))


def quick_attacks(folder: Path = CORPUS) -> Sequence[Attack]:
    """The attacks of `slop-code doctor --attacks`: at least one of each kind."""
    attacks = [attack for attack in read_corpus(folder) if attack.quick]
    if missing := [kind for kind in AttackKind if kind not in {attack.kind for attack in attacks}]:
        raise InfrastructureError(f"{folder}: no attacks of {', '.join(missing)}; reinstall slop-code")
    return attacks
