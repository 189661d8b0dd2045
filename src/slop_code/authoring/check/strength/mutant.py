"""Mutants, each a file of the reference with a small edit; their order, and the budget for trying them."""

from __future__ import annotations

import difflib
import random
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code._io import digest_of
from slop_code._safe_text import escape_control
from slop_code.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_DIFF = 2000
MAX_NAME = 200
_BUDGET = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)([smh]?)", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """The characters from `start` to `end` become `new`."""

    start: int
    end: int
    new: str
    kind: str

    def apply(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


@dataclass(frozen=True, slots=True)
class Mutant:
    file: str
    """Relative to the solution."""

    text: str
    """The text of the file in the reference."""

    edit: Edit

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.edit.start) + 1

    @property
    def lines(self) -> range:
        """The lines that the edit touches."""
        return range(self.line, self.line + self.text.count("\n", self.edit.start, self.edit.end) + 1)

    @property
    def mutated(self) -> str:
        return self.edit.apply(self.text)

    @property
    def name(self) -> str:
        return escape_control(f"{self.file}:{self.line} {self.edit.kind}", MAX_NAME)

    @property
    def diff(self) -> str:
        """A bounded unified diff with a line of context."""
        old, new = self.text.splitlines(), self.mutated.splitlines()
        lines = difflib.unified_diff(old, new, self.file, self.file, n=1, lineterm="")
        return escape_control("\n".join(lines), MAX_DIFF)


@dataclass(frozen=True, slots=True)
class MutantBudget:
    """Exactly one of the two is set."""

    mutants: int | None = None
    """For each checkpoint."""

    seconds: float | None = None
    """For all checkpoints together."""

    def __str__(self) -> str:
        return str(self.mutants) if self.seconds is None else f"{self.seconds:g}s"


DEFAULT_BUDGET = MutantBudget(mutants=20)


def parse_budget(text: str) -> MutantBudget:
    match = _BUDGET.fullmatch(text.strip())
    if match and match[2] and float(match[1]) > 0:
        return MutantBudget(seconds=float(match[1]) * _SECONDS[match[2]])
    if match and match[1].isdecimal() and int(match[1]) > 0 and not match[2]:
        return MutantBudget(mutants=int(match[1]))
    raise UsageError(
        f"--budget: {text[:100]!r} is not a budget; expected a number of mutants for each checkpoint, such as 20, "
        "or a time for all of them, such as 90s, 5m or 1h"
    )


def spread(mutants: Sequence[Mutant], seed: int) -> Iterator[Mutant]:
    """All mutants; each differs from those before it in line, then in kind, then in file."""
    left = list(mutants)
    content = digest_of(sorted({(mutant.file, mutant.text) for mutant in left}))
    random.Random(f"{seed} {content}").shuffle(left)
    sizes = Counter(mutant.file for mutant in left)
    lines: Counter[tuple[str, int]] = Counter()
    kinds: Counter[str] = Counter()
    files: Counter[str] = Counter()

    positions = {id(mutant): (mutant.file, mutant.line) for mutant in left}

    def use_counts(mutant: Mutant) -> tuple[int, int, float]:
        share = (files[mutant.file] + 1) / sizes[mutant.file]
        return lines[positions[id(mutant)]], kinds[mutant.edit.kind], share

    while left:
        best = min(left, key=use_counts)
        left.remove(best)
        lines[positions[id(best)]] += 1
        kinds[best.edit.kind] += 1
        files[best.file] += 1
        yield best
