"""Damage of the evidence: files that are missing, cut short or malformed, and files that belong to no pair."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.evaluation.evidence import Evidence, pair_folders, read_evidence
from slop_code.evaluation.result_files.evidence_files import (
    CTRF_REPORT,
    EVIDENCE_FILES,
    EXIT,
    JSON_REPORT,
    ROSTER,
    STREAM,
)
from slop_code.evaluation.roster import Roster
from slop_code.evaluation.test_code.test_inputs import INPUTS
from slop_code.execution.sandbox import REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from slop_code.evaluation.report import CorrectnessResults, TestResult


@dataclass(frozen=True, slots=True)
class Damage:
    folder: str
    file: str | None
    """It is None if the folder is missing, or has no evidence."""
    fact: str

    @property
    def location(self) -> str:
        return self.folder if self.file is None else f"{self.folder}/{self.file}"


def has_evidence(folder: Path) -> bool:
    """Whether a pair left evidence in this folder. The roster and the inputs belong to all pairs, and do not count."""
    return any(os.path.lexists(folder / name) for name in EVIDENCE_FILES if name not in (ROSTER, INPUTS))


def read_pairs(folder: Path, roster: Roster | str, pairs: int) -> list[Evidence]:
    """The evidence of each pair that left any. `folder` contains `.scbench`."""
    own = [roster.of_pair(number) if isinstance(roster, Roster) else Roster(()) for number in range(1, pairs + 1)]
    folders = zip(pair_folders(pairs), own, strict=True)
    return [read_evidence(folder, name, entries) for name, entries in folders if has_evidence(folder / name)]


def find_damage(
    stored: CorrectnessResults, roster: Roster | str, evidence: Sequence[Evidence], pairs: int
) -> Iterator[Damage]:
    """Without a verdict, only files that the result itself depends on have to be complete."""
    if isinstance(roster, str):
        yield Damage(REPORTS_DIR, ROSTER, roster)
    present = {pair.folder for pair in evidence}
    yield from (Damage(name, None, "is missing") for name in pair_folders(pairs) if name not in present)
    for pair in evidence:
        yield from (Damage(pair.folder, name, fact) for name, fact in _files(stored, pair))


def _files(stored: CorrectnessResults, pair: Evidence) -> Iterator[tuple[str, str]]:
    if isinstance(pair.exit, str):
        yield EXIT, pair.exit
    if pair.error is not None or pair.setup_failure is not None:
        return  # the files of such a pair are not used
    verdict = stored.infrastructure_failure_reason is None and stored.evidence != "stream"
    if stored.evidence == "json-report" and isinstance(pair.json_report, str):
        yield JSON_REPORT, pair.json_report
    if (stored.evidence == "ctrf" or verdict) and isinstance(pair.ctrf, str):
        yield CTRF_REPORT, pair.ctrf
    if verdict or any(test.status != "error" for test in _own_tests(stored, pair)):
        yield from ((STREAM, fault) for fault in pair.stream.faults[:1])
    if verdict and not pair.stream.faults and pair.stream.finished is None:
        yield STREAM, "does not come to its end"


def _own_tests(stored: CorrectnessResults, pair: Evidence) -> list[TestResult]:
    """The tests of this pair; all tests if the roster, which assigns them to pairs, is damaged."""
    own = pair.roster.nodeids
    return [test for test in stored.tests if not own or test.nodeid in own]


def stray_folders(folder: Path, pairs: int) -> list[str]:
    """Folders with the evidence of pairs that the evaluation did not have."""
    top = folder / REPORTS_DIR
    numbers = sorted(int(path.name) for path in top.glob("[0-9]*") if path.name.isdecimal())
    known = pair_folders(pairs)
    names = [REPORTS_DIR, *(f"{REPORTS_DIR}/{number}" for number in numbers)]
    return [name for name in names if name not in known and has_evidence(folder / name)]
