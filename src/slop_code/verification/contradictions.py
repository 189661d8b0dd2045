"""Contradictions between the files of the evidence, each of which is written by a program or plugin of its own."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.evaluation.reports.raw_test import ParsedReport
from slop_code.evaluation.result_files.evidence_files import CTRF_REPORT, JSON_REPORT, ROSTER, STREAM
from slop_code.execution.sandbox import LOG, REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set

    from slop_code.evaluation.evidence import Evidence
    from slop_code.evaluation.reports.raw_test import RawTest
    from slop_code.evaluation.roster import Roster

Tests = dict[str, "RawTest"]

_LAST_LINE = re.compile(r"=* ?((?:\d{1,9} [a-z]+(?:, )?)+) in \d+\.\d\ds(?: \([\d:, days]+\))? ?=*")
_STATUSES = {"errors": "error", "xfailed": "skipped"}
"""Words of pytest's last line that are not the name of the status."""

CONTRADICTION = "contradiction"
"""The kind of a discrepancy between two files; `stored` and `raw` then name both."""


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """A difference between a stored result and its evidence, or between two files of the evidence."""

    kind: str
    location: str
    """A test, a field of the result, or a file."""
    stored: str
    raw: str
    """The value that the evidence gives instead, or that the problem has now."""


def contradictions(pair: Evidence) -> Iterator[Discrepancy]:
    """The test that was running when pytest was killed is left out: only some of the reports may have it."""
    stream = pair.stream
    complete = stream.finished is not None and not stream.faults
    reports = {JSON_REPORT: pair.json_report, CTRF_REPORT: pair.ctrf}
    parsed = {name: report for name, report in reports.items() if isinstance(report, ParsedReport)}
    for name, report in parsed.items():
        if report.miscounted:
            yield Discrepancy(CONTRADICTION, f"{pair.folder}/{name}", *report.miscounted)
    listed = {**{name: report.tests for name, report in parsed.items()}, STREAM: stream.results.values()}
    running = stream.running if stream.finished not in (0, 1) else None
    tests = {
        name: {test.nodeid: test for test in records if test.nodeid != running} for name, records in listed.items()
    }
    yield from _statuses(pair.folder, tests)
    first, *others = [name for name in tests if complete or name != STREAM] or [STREAM]
    for name in others:
        yield from _names(pair.folder, (first, tests[first].keys()), (name, tests[name].keys()))
    yield from _exit_codes(pair)
    best = next(iter(tests))
    if best != CTRF_REPORT:
        yield from _counts(pair, best, tests[best])


def _statuses(folder: str, tests: Mapping[str, Tests]) -> Iterator[Discrepancy]:
    """Tests whose status in another report differs from that in the best report, which `tests` has first."""
    best, *others = tests
    for nodeid, test in tests[best].items():
        reported = [(name, tests[name][nodeid]) for name in others if nodeid in tests[name]]
        differing = [(name, other) for name, other in reported if not _agree(best, test, name, other)]
        if differing:
            texts = [f"{other.status} in {folder}/{name}" for name, other in differing]
            yield Discrepancy(CONTRADICTION, nodeid, f"{test.status} in {folder}/{best}", " and ".join(texts))


def _agree(first: str, test: RawTest, second: str, other: RawTest) -> bool:
    if (test.status, test.xpassed) == (other.status, other.xpassed):
        return True
    if CTRF_REPORT not in (first, second):
        return False
    ctrf, exact = (test, other) if first == CTRF_REPORT else (other, test)
    return agrees_with_ctrf(exact, ctrf)


def agrees_with_ctrf(exact: RawTest, ctrf: RawTest) -> bool:
    """Allows for three differences that the CTRF plugin makes itself.

    It does not tell an error in a stage of a test from a failure or a skip. It knows an expected failure only by the
    written marker. It reports a whole test as skipped when one of its subtests was.
    """
    if exact.status == "error":
        return ctrf.status in ("error", "failed", "skipped")
    if exact.status == "passed":
        return ctrf.status in ("passed", "skipped") or ctrf.xpassed
    return ctrf.status == exact.status or (exact.xpassed and ctrf.status == "passed")


def _names(folder: str, first: tuple[str, Set[str]], second: tuple[str, Set[str]]) -> Iterator[Discrepancy]:
    (first_file, first_names), (second_file, second_names) = first, second
    if first_names != second_names:
        name = min(first_names - second_names, default=None) or min(second_names - first_names)
        which = f"{'without' if name in first_names else 'with'} {name}"
        texts = (
            f"{len(first_names)} in {folder}/{first_file}",
            f"{len(second_names)} in {folder}/{second_file}, {which}",
        )
        yield Discrepancy(CONTRADICTION, "number of tests", *texts)


def _exit_codes(pair: Evidence) -> Iterator[Discrepancy]:
    report, finished = pair.json_report, pair.stream.finished
    announced = report.exit_code if isinstance(report, ParsedReport) else None
    if announced is not None and finished is not None and announced != finished:
        texts = f"{announced} in {pair.folder}/{JSON_REPORT}", f"{finished} in {pair.folder}/{STREAM}"
        yield Discrepancy(CONTRADICTION, "exit code", *texts)


def _counts(pair: Evidence, name: str, tests: Tests) -> Iterator[Discrepancy]:
    """pytest may print larger numbers: it counts stages and subtests that ended differently from their test."""
    printed = last_line(pair.log)
    if printed is None:
        return
    counts = Counter("xpassed" if test.xpassed else test.status for test in tests.values())
    for status, count in sorted(counts.items()):
        if printed[status] < count:
            texts = f"{count} in {pair.folder}/{name}", f"{printed[status]} in the last line of {pair.folder}/{LOG}"
            yield Discrepancy(CONTRADICTION, f"number of tests {status}", *texts)


def marker_contradictions(roster: Roster, evidence: Sequence[Evidence]) -> Iterator[Discrepancy]:
    """Tests whose markers in the roster, which decide what they count for, are not those in the stream of a judge.

    The evaluator tells each judge which tests are in quarantine, so the stream has that marker as well. A stream has
    the markers twice: where it lists the collected tests, and with each result.
    """
    expected = {entry.nodeid: entry.markers for entry in roster.entries}
    differing: dict[str, list[str]] = {}
    for pair in evidence:
        stream = pair.stream
        collected = [(entry.nodeid, entry.markers) for entry in stream.collected]
        results = [(test.nodeid, test.markers) for test in stream.results.values()]
        for nodeid, markers in dict.fromkeys([*collected, *results]):
            if nodeid in expected and markers != expected[nodeid]:
                differing.setdefault(nodeid, []).append(f"{_marked(markers)} in {pair.folder}/{STREAM}")
    for nodeid, texts in differing.items():
        listed = f"{_marked(expected[nodeid])} in {REPORTS_DIR}/{ROSTER}"
        yield Discrepancy(CONTRADICTION, nodeid, listed, " and ".join(texts))


def _marked(markers: Sequence[str]) -> str:
    return f"marked {', '.join(markers)}" if markers else "not marked"


def last_line(log: str) -> Counter[str] | None:
    """The counts of a last line such as `12 failed, 57 passed in 3.10s`; None if pytest's log ends otherwise."""
    lines = log.strip().rsplit("\n", 1)
    match = _LAST_LINE.fullmatch(lines[-1].strip())
    if match is None:
        return None
    counts: Counter[str] = Counter()
    for number, word in (part.split(" ") for part in match.group(1).split(", ")):
        counts[_STATUSES.get(word, word)] += int(number)
    return counts
