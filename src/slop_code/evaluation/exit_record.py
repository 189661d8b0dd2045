"""How the pytest of one pair ended, as the evaluator saw it: the judge's own reports cannot say that."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slop_code._io import write_atomic
from slop_code.errors import ResultError
from slop_code.evaluation.conclusion import REASON_LIMIT
from slop_code.evaluation.report import Stored, load_stored
from slop_code.evaluation.reports.raw_test import visible

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.pairs import Part

EXIT = "exit.json"


class Ending(Stored):
    exit_code: int
    """-1: pytest did not come to an end."""
    reason: str | None
    """Why there is no verdict."""

    @classmethod
    def of(cls, part: Part) -> Ending:
        told = part.told
        return cls(exit_code=part.exit_code, reason=None if told is None else visible(told, REASON_LIMIT))

    def save(self, path: Path) -> None:
        write_atomic(path, self.model_dump_json() + "\n")


def read_ending(folder: Path) -> Ending | str | None:
    """None where there is none, as in older results; a text says what is wrong with it."""
    path = folder / EXIT
    if not os.path.lexists(path):
        return None
    try:
        return load_stored(Ending, path, "")
    except ResultError as error:
        return str(error).removeprefix(f"{path}: ").removesuffix("; ")
