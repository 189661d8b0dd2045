"""Which mutants are tried, and for how long: the same ones for the same solution and seed."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code._io import digest_of
from slop_code.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.authoring.check.strength.mutant import Mutant

_BUDGET = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)([smh]?)", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class MutantBudget:
    """One of the two."""

    mutants: int | None = None
    """For each checkpoint."""

    seconds: float | None = None
    """For all checkpoints together."""

    def __str__(self) -> str:
        return str(self.mutants) if self.seconds is None else f"{self.seconds:g}s"


DEFAULT_BUDGET = MutantBudget(mutants=20)


def parse_budget(text: str) -> MutantBudget:
    found = _BUDGET.fullmatch(text.strip())
    if found and found[2] and float(found[1]) > 0:
        return MutantBudget(seconds=float(found[1]) * _SECONDS[found[2]])
    if found and found[1].isdecimal() and int(found[1]) > 0 and not found[2]:
        return MutantBudget(mutants=int(found[1]))
    raise UsageError(
        f"--budget: {text[:100]!r} is no budget; expected a number of mutants for each checkpoint, such as 20, "
        "or a time for all of them, such as 90s, 5m or 1h"
    )


def spread(mutants: Sequence[Mutant], seed: int) -> Iterator[Mutant]:
    """All of them, the most telling few first: other lines, then other kinds, then other files than those before."""
    left = list(mutants)
    content = digest_of(sorted({(mutant.file, mutant.text) for mutant in left}))
    random.Random(f"{seed} {content}").shuffle(left)
    sizes = Counter(mutant.file for mutant in left)
    lines: Counter[tuple[str, int]] = Counter()
    kinds: Counter[str] = Counter()
    files: Counter[str] = Counter()

    places = {id(mutant): (mutant.file, mutant.line) for mutant in left}

    def seen(mutant: Mutant) -> tuple[int, int, float]:
        share = (files[mutant.file] + 1) / sizes[mutant.file]
        return lines[places[id(mutant)]], kinds[mutant.edit.kind], share

    while left:
        best = min(left, key=seen)
        left.remove(best)
        lines[places[id(best)]] += 1
        kinds[best.edit.kind] += 1
        files[best.file] += 1
        yield best
