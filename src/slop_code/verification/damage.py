"""Raw reports that have to be there and are not, or are not whole; and those that nobody knows of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.evaluation.evidence import CTRF_REPORT, JSON_REPORT, STREAM
from slop_code.evaluation.exit_record import EXIT
from slop_code.execution.sandbox import REPORTS_DIR
from slop_code.verification.regrade import left_any, places_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.verification.regrade import Raw


@dataclass(frozen=True, slots=True)
class Damage:
    folder: str
    file: str | None
    """None: nothing is left in the folder."""
    fact: str

    @property
    def place(self) -> str:
        return self.folder if self.file is None else f"{self.folder}/{self.file}"


def damaged(stored: CorrectnessResults, raws: Sequence[Raw], pairs: int) -> Iterator[Damage]:
    """Of an evaluation without a verdict, only what the result itself rests on."""
    there = {raw.name for raw in raws}
    yield from (Damage(name, None, "is missing") for name in places_of(pairs) if name not in there)
    for raw in raws:
        yield from (Damage(raw.name, name, fact) for name, fact in _files(stored, raw))


def _files(stored: CorrectnessResults, raw: Raw) -> Iterator[tuple[str, str]]:
    verdict = stored.infrastructure_failure_reason is None and stored.evidence != "stream"
    accounts = raw.accounts
    if stored.evidence == "json-report" and isinstance(accounts.json_report, str):
        yield JSON_REPORT, accounts.json_report
    if (stored.evidence == "ctrf" or verdict) and isinstance(accounts.ctrf, str):
        yield CTRF_REPORT, accounts.ctrf
    if verdict or any(test.status != "error" for test in stored.tests):
        name = f"{STREAM} "
        yield from ((STREAM, problem.removeprefix(name)) for problem in accounts.stream.problems[:1])
    if verdict and not accounts.stream.problems and accounts.stream.finished is None:
        yield STREAM, "does not come to its end"
    if isinstance(raw.ending, str):
        yield EXIT, f"is malformed: {raw.ending}"


def strays(folder: Path, pairs: int) -> list[str]:
    """Folders with raw reports of pairs that the evaluation did not have."""
    top = folder / REPORTS_DIR
    numbered = sorted((place.name for place in top.glob("[0-9]*") if place.name.isdecimal()), key=lambda one: int(one))
    found = [REPORTS_DIR, *(f"{REPORTS_DIR}/{name}" for name in numbered)]
    return [name for name in found if name not in places_of(pairs) and left_any(folder / name)]
