"""Evidence: the files in `.scbench` that a verdict is computed from, as a record for each judge/subject pair."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import Field

from slop_code._io import TooLargeError, os_error_text, read_bounded, tail
from slop_code._safe_text import escape_control
from slop_code.errors import InfrastructureError, ResultError
from slop_code.evaluation.reports.ctrf_report import parse_ctrf
from slop_code.evaluation.reports.json_report import parse_json_report
from slop_code.evaluation.reports.raw_test import CutShortError, ParsedReport, RawTest, ReportError
from slop_code.evaluation.reports.stream import Stream, read_stream
from slop_code.evaluation.result_files.evidence_files import (
    CTRF_REPORT,
    EXIT,
    JSON_REPORT,
    ROSTER,
    STREAM,
)
from slop_code.evaluation.result_files.stored_record import Duration, Stored, load_stored
from slop_code.evaluation.roster import MAX_PAIRS, Roster
from slop_code.evaluation.usage.resources import NO_RESOURCES, Count, Resources, StruckLimit
from slop_code.evaluation.usage.starvation import MIN_FREE_SHARE
from slop_code.execution.process import MAX_TAIL
from slop_code.execution.sandbox import LOG, REPORTS_DIR, SUBJECT_BOX_ENDED

if TYPE_CHECKING:
    from pathlib import Path

REPORT_LIMIT = 64 * 1024 * 1024
USAGE_ERROR = 4
"""The exit code of a pytest that refused its arguments or a conftest.py."""

NO_TESTS = 5
"""The exit code of a pytest that had no test to run."""

NEVER_RAN = -1
"""The exit code of a pytest that was not started, or that did not end by itself."""

MISSING = "is missing"
SETUP_LIMIT = 16 * 1024

ReportSource = Literal["json-report", "ctrf", "stream", "setup"]
"""From the most to the least detailed. With `setup`, pytest never ran, because the submission's set-up failed."""

Parsed = TypeVar("Parsed")
ReportParser = Callable[[bytes], ParsedReport]


class PytestExit(Stored):
    """The end of a pair's pytest as the evaluator observed it, because the judge's own reports cannot contain it."""

    pair: int = Field(ge=1, le=MAX_PAIRS)
    exit_code: int | None
    """It is None if pytest did not end by itself."""

    session_timeout: Duration | None
    """Seconds, or None if there was no session timeout."""

    error: str | None
    """The failure of the boxes. The files of pytest are not used then."""

    setup_failure: str | None = None
    """Why the submission cannot be set up, by its own fault: pytest was not started, and every test has failed."""

    memory_limit: Count | None = None
    """Bytes; the memory limit of the submission, if the kernel killed a process of the subject's box for it."""

    processor_share: float | None = Field(default=None, ge=0, le=1)
    """For a repetition: the share of a processor that a busy process got directly before or after, the lower one."""

    memory_share: float | None = Field(default=None, ge=0, le=1)
    """For a repetition: the share of the memory limit that was free directly before or after, the lower one."""


@dataclass(frozen=True)
class Evidence:
    """The evidence of one pair. A text instead of a record says what is wrong with the file."""

    roster: Roster
    """The tests that the pair had to run."""

    exit: PytestExit | str
    json_report: ParsedReport | str = MISSING
    ctrf: ParsedReport | str = MISSING
    stream: Stream = field(default_factory=Stream)
    log: str = ""
    """The end of pytest's output."""

    folder: str = REPORTS_DIR
    """Relative to the folder of the result."""

    isolation: Mapping[str, Any] = field(default_factory=dict)
    """Isolation that was in effect; empty if no box was opened, and in evidence that was read from files."""

    @classmethod
    def of_failure(cls, error: InfrastructureError | OSError, roster: Roster, pair: int = 1) -> Evidence:
        """The evidence of a pair, or of an evaluation, that ended with this error."""
        code = error.exit_code if isinstance(error, InfrastructureError) else None
        ended = PytestExit(pair=pair, exit_code=code, session_timeout=None, error=_failure_text(error))
        return cls(roster, ended)

    @classmethod
    def of_setup_failure(cls, reason: str, roster: Roster) -> Evidence:
        """The evidence of an evaluation whose submission cannot be set up, by its own fault."""
        text = escape_control(f"set-up failed: {reason}", SETUP_LIMIT)
        return cls(roster, PytestExit(pair=1, exit_code=None, session_timeout=None, error=None, setup_failure=text))

    def with_reports(self, folder: Path, parse_ctrf: ReportParser = parse_ctrf) -> Evidence:
        """Never raises: instead of a report that cannot be used, the evidence has the text that says why."""
        return replace(
            self,
            json_report=_parsed(folder / JSON_REPORT, parse_json_report),
            ctrf=_parsed(folder / CTRF_REPORT, parse_ctrf),
            stream=read_stream(folder / STREAM),
        )

    def without_deselection(self) -> Evidence:
        return replace(self, stream=replace(self.stream, deselected=set()))

    @property
    def error(self) -> str | None:
        return None if isinstance(self.exit, str) else self.exit.error

    @property
    def setup_failure(self) -> str | None:
        return None if isinstance(self.exit, str) else self.exit.setup_failure

    @functools.cached_property
    def failed_by_memory_limit(self) -> frozenset[str]:
        """The tests without a result, if the submission's memory limit ended the subject's box."""
        ended = self.exit
        if isinstance(ended, str) or ended.memory_limit is None or ended.exit_code != SUBJECT_BOX_ENDED:
            return frozenset()
        return self.roster.nodeids - self.deselected - {test.nodeid for test in self.tests}

    @property
    def exit_code(self) -> int:
        code = None if isinstance(self.exit, str) else self.exit.exit_code
        return NEVER_RAN if code is None else code

    @property
    def source(self) -> ReportSource:
        """The best report that can be used."""
        if self.setup_failure is not None:
            return "setup"
        if self.error is None and isinstance(self.json_report, ParsedReport):
            return "json-report"
        return "ctrf" if self.error is None and isinstance(self.ctrf, ParsedReport) else "stream"

    @functools.cached_property
    def _report(self) -> ParsedReport:
        if self.error is not None or self.setup_failure is not None:
            return ParsedReport((), None, ())
        results, errors = self.stream.results.values(), self.stream.collection_errors
        from_stream = ParsedReport(tuple(results), self.stream.finished, tuple(errors))
        usable = [report for report in (self.json_report, self.ctrf) if isinstance(report, ParsedReport)]
        return [*usable, from_stream][0]

    @functools.cached_property
    def tests(self) -> tuple[RawTest, ...]:
        stream = self.stream
        tests = [_with_details(test, stream.results.get(test.nodeid)) for test in self._report.tests]
        return tuple(replace(test, refused=stream.refused.get(test.nodeid, ())) for test in tests)

    @property
    def collection_errors(self) -> tuple[str, ...]:
        return self._report.collection_errors or tuple(self.stream.collection_errors)

    @property
    def reported_exit(self) -> int | None:
        """The exit code that pytest announced, if a report has it."""
        return self.stream.finished if self._report.exit_code is None else self._report.exit_code

    @property
    def running(self) -> str | None:
        return None if self.error is not None else self.stream.running

    @property
    def deselected(self) -> frozenset[str]:
        return frozenset(self.stream.deselected) if self.error is None else frozenset()

    def resources_of(self, nodeid: str) -> Resources:
        memory_limit = None if isinstance(self.exit, str) else self.exit.memory_limit
        if nodeid in self.failed_by_memory_limit:
            return Resources(limits=(StruckLimit(kind="memory", limit=memory_limit, call=None),))
        used = NO_RESOURCES if self.error is not None else self.stream.resources.get(nodeid, NO_RESOURCES)
        return used if memory_limit is None else used.with_memory_limit(memory_limit)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with the reports that were needed."""
        reports = [(JSON_REPORT, self.json_report), (CTRF_REPORT, self.ctrf)]
        texts = [f"{name} {report}" for name, report in reports if isinstance(report, str)]
        return (
            *(texts if self.source != "json-report" else ()),
            *(f"{STREAM} {fault}" for fault in self.stream.faults),
        )


def _with_details(test: RawTest, streamed: RawTest | None) -> RawTest:
    """Adds the commands and the output of a failed test, which only the stream has."""
    return replace(test, calls=streamed.calls, output=streamed.output) if streamed and test.status != "passed" else test


def _failure_text(error: InfrastructureError | OSError) -> str:
    if isinstance(error, InfrastructureError):
        return str(error)
    return os_error_text(error, "the cache or the output")


def pair_folders(pairs: int) -> list[str]:
    """The evidence folders of an evaluation with this number of pairs, relative to the folder of the result."""
    return [REPORTS_DIR] if pairs == 1 else [f"{REPORTS_DIR}/{number}" for number in range(1, pairs + 1)]


def repeat_folder(number: int) -> str:
    """The evidence folder of a repetition of starved tests, relative to the folder of the result."""
    return f"{REPORTS_DIR}/repeat-{number}"


def had_no_processor(repeat: Evidence) -> bool:
    """Whether the machine was busy with the work of others during this repetition."""
    share = repeat.exit.processor_share if isinstance(repeat.exit, PytestExit) else None
    return share is not None and share < MIN_FREE_SHARE


def had_no_memory(repeat: Evidence) -> bool:
    """True if the machine had less memory left for this repetition than the submission may use."""
    share = repeat.exit.memory_share if isinstance(repeat.exit, PytestExit) else None
    return share is not None and share < 1


def read_repeats(result_folder: Path) -> list[Evidence]:
    """The evidence of all repetitions, in order. A repetition whose roster is damaged is left out."""
    repeats, number = [], 1
    while (result_folder / repeat_folder(number)).is_dir():
        roster = read_roster(result_folder, repeat_folder(number))
        if isinstance(roster, Roster):
            repeats.append(read_evidence(result_folder, repeat_folder(number), roster))
        number += 1
    return repeats


def read_roster(result_folder: Path, folder: str = REPORTS_DIR) -> Roster | str:
    def parse(data: bytes) -> Roster:
        try:
            return Roster.from_json(data)
        except ValueError as error:
            raise ReportError(str(error)) from error

    return _parsed(result_folder / folder / ROSTER, parse)


def read_evidence(result_folder: Path, folder: str, roster: Roster) -> Evidence:
    """Never raises."""
    path = result_folder / folder
    last = folder.rpartition("/")[2]
    ended = read_exit(path / EXIT, int(last) if last.isdecimal() else 1)
    return Evidence(roster, ended, log=tail(path / LOG, MAX_TAIL), folder=folder).with_reports(path)


def running_test(result_folder: Path) -> str | None:
    """The test that was running when the tests broke off; with several pairs, in the first pair that broke off."""
    roster = read_roster(result_folder)
    if isinstance(roster, str):
        return None
    for number, folder in enumerate(pair_folders(roster.pairs), start=1):
        pair = read_evidence(result_folder, folder, roster.of_pair(number))
        if pair.running in pair.roster.nodeids:
            return pair.running
    return None


def read_exit(path: Path, pair: int) -> PytestExit | str:
    try:
        ended = load_stored(PytestExit, path, "")
    except ResultError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return MISSING
        return f"is malformed: {error.fact}"
    return ended if ended.pair == pair else f"is of pair {ended.pair}"


def _parsed(path: Path, parse: Callable[[bytes], Parsed]) -> Parsed | str:
    try:
        return parse(read_bounded(path, REPORT_LIMIT))
    except FileNotFoundError:
        return MISSING
    except TooLargeError:
        return f"is larger than {REPORT_LIMIT // 1024**2} MiB"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except CutShortError:
        return "is cut short"
    except ReportError as error:
        return f"is malformed: {escape_control(str(error), 500)}"


def weakest_isolation(evidence: Sequence[Evidence], repeats: Sequence[Evidence] = ()) -> dict[str, Any]:
    """Isolation that was in effect for all pairs and repetitions; empty if no box was opened."""
    isolations = [pair.isolation for pair in (*evidence, *repeats) if pair.isolation]
    if not isolations:
        return {}
    weakest = min(isolations, key=lambda each: (bool(each.get("control_groups")), len(each.get("limits", ()))))
    return {**weakest, "pairs": len(evidence)}
