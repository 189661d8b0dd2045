"""Contradictions between the reports of a pytest run, each of which is written by a plugin of its own."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.evaluation.evidence import CTRF_REPORT, JSON_REPORT, STREAM
from slop_code.evaluation.reports.raw_test import ParsedReport
from slop_code.execution.sandbox import LOG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Set

    from slop_code.evaluation.evidence import Evidence
    from slop_code.evaluation.reports.raw_test import RawTest

Tests = dict[str, "RawTest"]

_LAST_LINE = re.compile(r"=* ?((?:\d{1,9} [a-z]+(?:, )?)+) in \d+\.\d\ds(?: \([\d:, days]+\))? ?=*")
_WORDS = {"errors": "error", "xfailed": "skipped"}
"""How pytest's last line calls what the reports' records call otherwise."""

CONTRADICTION = "contradiction"
"""The kind of a discrepancy between two files; `stored` and `raw` then name both."""


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """Between a stored result and what it was made of."""

    kind: str
    location: str
    stored: str
    raw: str
    """What the evidence gives instead, or what the problem has now."""


def contradictions(pair: Evidence) -> Iterator[Discrepancy]:
    """Reports may or may not have the test that was running when pytest was ended."""
    stream = pair.stream
    whole = stream.finished is not None and not stream.problems
    reports = {JSON_REPORT: pair.json_report, CTRF_REPORT: pair.ctrf}
    parsed = {name: report for name, report in reports.items() if isinstance(report, ParsedReport)}
    for name, report in parsed.items():
        if report.miscounted:
            yield Discrepancy(CONTRADICTION, f"{pair.folder}/{name}", *report.miscounted)
    listed = {**{name: report.tests for name, report in parsed.items()}, STREAM: stream.results.values()}
    running = stream.last_started if stream.finished not in (0, 1) else None
    tests = {name: {test.nodeid: test for test in some if test.nodeid != running} for name, some in listed.items()}
    yield from _statuses(pair.folder, tests)
    first, *others = [name for name in tests if whole or name != STREAM] or [STREAM]
    for name in others:
        yield from _names(pair.folder, (first, tests[first].keys()), (name, tests[name].keys()))
    yield from _ends(pair)
    best = next(iter(tests))
    if best != CTRF_REPORT:
        yield from _counts(pair, best, tests[best])


def _statuses(folder: str, tests: Mapping[str, Tests]) -> Iterator[Discrepancy]:
    """Against the best of the reports."""
    best, *others = tests
    for nodeid, test in tests[best].items():
        same = [(name, tests[name][nodeid]) for name in others if nodeid in tests[name]]
        differing = [(name, other) for name, other in same if not _agree(best, test, name, other)]
        if differing:
            texts = [f"{other.status} in {folder}/{name}" for name, other in differing]
            yield Discrepancy(CONTRADICTION, nodeid, f"{test.status} in {folder}/{best}", " and ".join(texts))


def _agree(first: str, test: RawTest, second: str, other: RawTest) -> bool:
    if (test.status, test.xpassed) == (other.status, other.xpassed):
        return True
    if CTRF_REPORT not in (first, second):
        return False
    ctrf, exact = (test, other) if first == CTRF_REPORT else (other, test)
    return like_ctrf(exact, ctrf)


def like_ctrf(exact: RawTest, ctrf: RawTest) -> bool:
    """CTRF has a word for the worst of a test's stages, knows of an expected failure by the written marker alone, and
    takes a skipped part of a test for the whole."""
    if exact.status == "error":
        return ctrf.status in ("error", "failed", "skipped")
    if exact.status == "passed":
        return ctrf.status in ("passed", "skipped") or ctrf.xpassed
    return ctrf.status == exact.status or (exact.xpassed and ctrf.status == "passed")


def _names(folder: str, first: tuple[str, Set[str]], second: tuple[str, Set[str]]) -> Iterator[Discrepancy]:
    (here, own), (there, other) = first, second
    if own != other:
        name = min(own - other, default=None) or min(other - own)
        which = f"{'without' if name in own else 'with'} {name}"
        texts = f"{len(own)} in {folder}/{here}", f"{len(other)} in {folder}/{there}, {which}"
        yield Discrepancy(CONTRADICTION, "number of tests", *texts)


def _ends(pair: Evidence) -> Iterator[Discrepancy]:
    report, finished = pair.json_report, pair.stream.finished
    announced = report.exit_code if isinstance(report, ParsedReport) else None
    if announced is not None and finished is not None and announced != finished:
        texts = f"{announced} in {pair.folder}/{JSON_REPORT}", f"{finished} in {pair.folder}/{STREAM}"
        yield Discrepancy(CONTRADICTION, "exit code", *texts)


def _counts(pair: Evidence, name: str, tests: Tests) -> Iterator[Discrepancy]:
    """What pytest printed may be more: it counts stages and parts of tests that ended differently."""
    printed = last_line(pair.log)
    if printed is None:
        return
    counts = Counter("xpassed" if test.xpassed else test.status for test in tests.values())
    for status, count in sorted(counts.items()):
        if printed[status] < count:
            texts = f"{count} in {pair.folder}/{name}", f"{printed[status]} in the last line of {pair.folder}/{LOG}"
            yield Discrepancy(CONTRADICTION, f"number of tests {status}", *texts)


def last_line(log: str) -> Counter[str] | None:
    """`12 failed, 57 passed in 3.10s`; None where pytest's last words are others."""
    lines = log.strip().rsplit("\n", 1)
    match = _LAST_LINE.fullmatch(lines[-1].strip())
    if match is None:
        return None
    counts: Counter[str] = Counter()
    for number, word in (part.split(" ") for part in match.group(1).split(", ")):
        counts[_WORDS.get(word, word)] += int(number)
    return counts
