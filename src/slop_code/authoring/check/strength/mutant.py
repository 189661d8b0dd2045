"""Mutants: a file of the reference with one small edit."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from slop_code.evaluation.reports.raw_test import visible

MAX_DIFF = 2000
MAX_NAME = 200


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
        return visible(f"{self.file}:{self.line} {self.edit.kind}", MAX_NAME)

    @property
    def diff(self) -> str:
        """A bounded unified diff with one line of context."""
        old, new = self.text.splitlines(), self.mutated.splitlines()
        lines = difflib.unified_diff(old, new, self.file, self.file, n=1, lineterm="")
        return visible("\n".join(lines), MAX_DIFF)
