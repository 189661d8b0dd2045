"""A hostile submission: what it wants, what it is made of, and how one can see that it worked."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHORT = Path(__file__).parent / "corpus"
"""The few that can be tried on any machine; the others are with the tests."""


class Kind(StrEnum):
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
    """A test passes that the program does not deserve; an attack can also say in this way that it got somewhere."""

    LOSS = "loss"
    """A test of honest work fails, or there is no verdict: the judge was disturbed."""

    CHANGED = "changed"
    """A file that is not the submission's own is another now."""

    LEAKED = "leaked"
    """A secret of the host stands in what the evaluator wrote."""

    LEFT = "left"
    """A process, a file, an open port or shared memory outlives the evaluation."""

    CONNECTED = "connected"
    """Something outside of the boxes was reached."""

    POISONED = "poisoned"
    """The next evaluation, of another submission, comes out different."""

    FLOODED = "flooded"
    """The evaluator wrote more than anybody wants to keep."""

    RAW = "raw"
    """A control sequence reaches a terminal, or markup a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    name: str
    kind: Kind
    goal: str
    does: Effect
    """What it does to an evaluator without any defence."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Laid over the program; `cheat.py` is called at the start of every command."""

    build: str = ""
    """Python for what a file of text cannot hold; run in the submission's folder."""

    environment: Mapping[str, Any] = field(default_factory=dict)
    """Keys over those of the environment, such as tighter limits."""

    unshown: str = ""
    """Why it cannot be shown at work with the defences off; no attack is without either."""

    @property
    def signals(self) -> bool:
        """Whether it does things to processes, and therefore asks for a box that keeps them in."""
        return any("boxed()" in text for text in self.files.values())


def read_attack(path: Path) -> Attack:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    kind, does = Kind(path.parent.name), Effect(found.pop("does"))
    return Attack(name=path.stem, kind=kind, does=does, **found)


def read_corpus(*folders: Path) -> Sequence[Attack]:
    """By kind, in the order of `Kind`, then by name; a name stands for one attack."""
    order = list(Kind)
    found = [read_attack(path) for folder in folders for path in folder.glob("*/*.yaml")]
    return sorted(found, key=lambda attack: (order.index(attack.kind), attack.name))
