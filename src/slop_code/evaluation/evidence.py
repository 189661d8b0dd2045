"""What one pytest run left behind, from the best of its three accounts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from slop_code._io import TooLargeError, read_bounded
from slop_code.evaluation.reports.ctrf_report import parse_ctrf
from slop_code.evaluation.reports.json_report import parse_json_report
from slop_code.evaluation.reports.raw_test import CutShortError, ParsedReport, RawTest, ReportError, visible
from slop_code.evaluation.reports.stream import Stream, read_stream

if TYPE_CHECKING:
    from pathlib import Path

JSON_REPORT = "pytest-report.json"
CTRF_REPORT = "ctrf-report.json"
STREAM = "stream.jsonl"
REPORT_LIMIT = 64 * 1024 * 1024

Source = Literal["json-report", "ctrf", "stream"]
Parser = Callable[[bytes], ParsedReport]
_REPORTS: tuple[tuple[Source, str, Parser], ...] = (
    ("json-report", JSON_REPORT, parse_json_report),
    ("ctrf", CTRF_REPORT, parse_ctrf),
)


@dataclass(frozen=True, slots=True)
class Evidence:
    tests: tuple[RawTest, ...]
    source: Source
    problems: tuple[str, ...] = ()
    running: str | None = None
    deselected: frozenset[str] = frozenset()
    collection_errors: tuple[str, ...] = ()
    announced: int | None = None
    """What our own plugin said at the end; None where it did not run to the end."""
    reported_exit: int | None = None
    """The exit code that pytest announced, where the account has one."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """All three; a text says why a report cannot be used."""

    json_report: ParsedReport | str
    ctrf: ParsedReport | str
    stream: Stream

    @property
    def evidence(self) -> Evidence:
        return _best(self.stream, [self.json_report, self.ctrf])


def read_accounts(folder: Path) -> Accounts:
    json_report, ctrf = (parsed(folder / name, parse) for _, name, parse in _REPORTS)
    return Accounts(json_report, ctrf, read_stream(folder / STREAM))


def read_evidence(folder: Path) -> Evidence:
    """Never fails: what is missing or damaged stands in `problems`. The second report is read for want of the first."""
    return _best(read_stream(folder / STREAM), (parsed(folder / name, parse) for _, name, parse in _REPORTS))


def _best(stream: Stream, reports: Iterable[ParsedReport | str]) -> Evidence:
    problems: list[str] = []
    source, report = _first(reports, problems)
    if report is None:
        report = ParsedReport(stream.results, stream.finished, stream.collection_errors)
    told = {test.nodeid: test for test in stream.results}
    return Evidence(
        tests=tuple(_with_details(test, told.get(test.nodeid)) for test in report.tests),
        source=source,
        problems=(*problems, *stream.problems),
        running=stream.last_started,
        deselected=stream.deselected,
        collection_errors=report.collection_errors or stream.collection_errors,
        announced=stream.finished,
        reported_exit=stream.finished if report.exit_code is None else report.exit_code,
    )


def _with_details(test: RawTest, told: RawTest | None) -> RawTest:
    """Only the stream says what a test ran and printed."""
    return replace(test, calls=told.calls, output=told.output) if told and test.status != "passed" else test


def _first(reports: Iterable[ParsedReport | str], problems: list[str]) -> tuple[Source, ParsedReport | None]:
    for (source, name, _), outcome in zip(_REPORTS, reports, strict=False):
        if isinstance(outcome, ParsedReport):
            return source, outcome
        problems.append(f"{name} {outcome}")
    return "stream", None


def parsed(path: Path, parse: Parser) -> ParsedReport | str:
    try:
        return parse(read_bounded(path, REPORT_LIMIT))
    except FileNotFoundError:
        return "is missing"
    except TooLargeError:
        return f"is larger than {REPORT_LIMIT // 1024**2} MiB"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except CutShortError:
        return "is cut short"
    except ReportError as error:
        return f"is malformed: {visible(str(error), 500)}"
