"""Whether the accounts that one pytest run left say the same; each of them is written by a plugin of its own."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from slop_code.evaluation.evidence import CTRF_REPORT, JSON_REPORT, STREAM
from slop_code.evaluation.reports.raw_test import ParsedReport
from slop_code.verification.discrepancy import CONTRADICTION, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Set

    from slop_code.evaluation.reports.raw_test import RawTest
    from slop_code.verification.regrade import Raw

Tests = dict[str, "RawTest"]

LOG = "pytest.log"
_LAST_LINE = re.compile(r"=* ?((?:\d{1,9} [a-z]+(?:, )?)+) in \d+\.\d\ds(?: \([\d:, days]+\))? ?=*")
_WORDS = {"errors": "error", "xfailed": "skipped"}
"""How pytest's last line calls what the reports' records call otherwise."""


def contradictions(raw: Raw) -> Iterator[Finding]:
    """Of the test that was running when pytest was told to end, reports may say something or not."""
    accounts, whole = raw.accounts, raw.accounts.stream.finished is not None and not raw.accounts.stream.problems
    reports = {JSON_REPORT: accounts.json_report, CTRF_REPORT: accounts.ctrf}
    parsed = {name: report for name, report in reports.items() if isinstance(report, ParsedReport)}
    for name, report in parsed.items():
        if report.miscounted:
            yield Finding(CONTRADICTION, f"{raw.name}/{name}", *report.miscounted)
    found = {**{name: report.tests for name, report in parsed.items()}, STREAM: accounts.stream.results}
    running = accounts.stream.last_started if accounts.stream.finished not in (0, 1) else None
    tests = {name: {one.nodeid: one for one in some if one.nodeid != running} for name, some in found.items()}
    yield from _statuses(raw.name, tests)
    listed = [name for name in tests if whole or name != STREAM]
    for name in listed[1:]:
        yield from _names(raw.name, listed[0], tests[listed[0]].keys(), name, tests[name].keys())
    yield from _ends(raw)
    best = next(iter(tests))
    if best != CTRF_REPORT:
        yield from _counts(raw, best, tests[best])


def _statuses(folder: str, tests: Mapping[str, Tests]) -> Iterator[Finding]:
    """Against the best of the accounts."""
    best, *others = tests
    for nodeid, test in tests[best].items():
        told = [(name, tests[name][nodeid]) for name in others if nodeid in tests[name]]
        other = [f"{one.status} in {folder}/{name}" for name, one in told if not _agree(best, test, name, one)]
        if other:
            yield Finding(CONTRADICTION, nodeid, f"{test.status} in {folder}/{best}", " and ".join(other))


def _agree(first: str, one: RawTest, second: str, other: RawTest) -> bool:
    if (one.status, one.xpassed) == (other.status, other.xpassed):
        return True
    if CTRF_REPORT not in (first, second):
        return False
    ctrf, told = (one, other) if first == CTRF_REPORT else (other, one)
    return like_ctrf(told, ctrf)


def like_ctrf(told: RawTest, ctrf: RawTest) -> bool:
    """CTRF has the worst of a test's stages as one word, knows of an expected failure by the written marker alone,
    and takes a skipped part of a test for the whole."""
    if told.status == "error":
        return ctrf.status in ("error", "failed", "skipped")
    if told.status == "passed":
        return ctrf.status in ("passed", "skipped") or ctrf.xpassed
    return ctrf.status == told.status or (told.xpassed and ctrf.status == "passed")


def _names(folder: str, first: str, here: Set[str], second: str, there: Set[str]) -> Iterator[Finding]:
    if here != there:
        name = min(here - there, default=None) or min(there - here)
        which = f"{'without' if name in here else 'with'} {name}"
        one, other = f"{len(here)} in {folder}/{first}", f"{len(there)} in {folder}/{second}, {which}"
        yield Finding(CONTRADICTION, "number of tests", one, other)


def _ends(raw: Raw) -> Iterator[Finding]:
    report, finished = raw.accounts.json_report, raw.accounts.stream.finished
    announced = report.exit_code if isinstance(report, ParsedReport) else None
    if announced is not None and finished is not None and announced != finished:
        one, other = f"{announced} in {raw.name}/{JSON_REPORT}", f"{finished} in {raw.name}/{STREAM}"
        yield Finding(CONTRADICTION, "exit code", one, other)


def _counts(raw: Raw, name: str, tests: Tests) -> Iterator[Finding]:
    """What pytest printed may be more: it counts stages and parts of tests that ended differently."""
    printed = last_line(raw.log)
    if printed is None:
        return
    found = Counter("xpassed" if test.xpassed else test.status for test in tests.values())
    for status, count in sorted(found.items()):
        if printed[status] < count:
            one, other = f"{count} in {raw.name}/{name}", f"{printed[status]} in the last line of {raw.name}/{LOG}"
            yield Finding(CONTRADICTION, f"number of tests {status}", one, other)


def last_line(log: str) -> Counter[str] | None:
    """`12 failed, 57 passed in 3.10s`; None where pytest's last words are others."""
    lines = log.strip().rsplit("\n", 1)
    found = _LAST_LINE.fullmatch(lines[-1].strip())
    if found is None:
        return None
    counts: Counter[str] = Counter()
    for number, word in (one.split(" ") for one in found.group(1).split(", ")):
        counts[_WORDS.get(word, word)] += int(number)
    return counts
