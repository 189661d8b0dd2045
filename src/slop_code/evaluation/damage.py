"""Raw reports that have to be there and are not, or are not whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.evaluation.evidence import CTRF_REPORT, JSON_REPORT, STREAM, parsed
from slop_code.evaluation.reports.ctrf import parse_ctrf
from slop_code.evaluation.reports.json_report import parse_json_report
from slop_code.execution.boxes import REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.evaluation.rederive import Raw
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.evaluation.reports.record import ParsedReport


def damaged(stored: CorrectnessResults, raws: Sequence[Raw], pairs: int) -> Iterator[tuple[str, str]]:
    """Each with its place. Of an evaluation without a verdict, only what the result itself rests on."""
    there = {raw.name for raw in raws}
    expected = [f"{REPORTS_DIR}/{number}" for number in range(1, pairs + 1)] if pairs > 1 else [REPORTS_DIR]
    yield from ((name, "is missing") for name in expected if name not in there)
    for raw in raws:
        yield from ((f"{raw.name}/{name}", fact) for name, fact in _files(stored, raw))


def _files(stored: CorrectnessResults, raw: Raw) -> Iterator[tuple[str, str]]:
    verdict = stored.infrastructure_failure_reason is None and stored.evidence != "stream"
    if stored.evidence == "json-report":
        yield from _told(JSON_REPORT, parsed(raw.folder / JSON_REPORT, parse_json_report))
    if stored.evidence == "ctrf" or verdict:
        yield from _told(CTRF_REPORT, parsed(raw.folder / CTRF_REPORT, parse_ctrf))
    if verdict or any(test.status != "error" for test in stored.tests):
        name = f"{STREAM} "
        yield from ((STREAM, problem.removeprefix(name)) for problem in raw.stream.problems[:1])
    if verdict and not raw.stream.problems and raw.stream.finished is None:
        yield STREAM, "does not come to its end"


def _told(name: str, outcome: ParsedReport | str) -> Iterator[tuple[str, str]]:
    if isinstance(outcome, str):
        yield name, outcome
