"""From a roster and evidence to one result per test."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code.evaluation.groups import GroupType, group_for
from slop_code.evaluation.report import TestResult
from slop_code.evaluation.reports.raw_test import RawTest, visible
from slop_code.evaluation.roster import Roster, RosterEntry
from slop_code.evaluation.selection import checkpoint_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slop_code.evaluation.evidence import Evidence

MESSAGE_LIMIT = 16 * 1024
CALL_LIMIT = 2 * 1024
MAX_CALLS = 32
NOT_IN_ROSTER = "not in the roster of this checkpoint's tests"


def grade(
    roster: Roster,
    evidence: Evidence,
    *,
    ordered: Sequence[str],
    current: str,
    custom: Mapping[str, GroupType],
    missing: str = "left no result",
) -> list[TestResult]:
    """Every test of the roster once, in its order; `missing` says why some have no result.

    Markers are the roster's: the keywords of a report hold names of functions and files too.
    """
    found = {test.nodeid: test for test in evidence.tests}
    graded: list[tuple[RosterEntry, RawTest]] = []
    for entry in roster.entries:
        raw = found.get(entry.nodeid)
        if raw is None and entry.nodeid in evidence.deselected:
            continue
        raw = raw or RawTest(entry.nodeid, "error", 0.0, message=_why(entry.nodeid, evidence, missing))
        graded.append((entry, raw))
    known = roster.nodeids
    for nodeid in [nodeid for nodeid in found if nodeid not in known]:
        stranger = RawTest(nodeid, "error", found[nodeid].duration_ms, message=NOT_IN_ROSTER)
        graded.append((RosterEntry(nodeid, ()), stranger))
    return [_result(entry, raw, ordered, current, custom) for entry, raw in graded]


def _why(nodeid: str, evidence: Evidence, missing: str) -> str:
    return f"{missing} (this test was running)" if nodeid == evidence.running else missing


def _result(
    entry: RosterEntry,
    raw: RawTest,
    ordered: Sequence[str],
    current: str,
    custom: Mapping[str, GroupType],
) -> TestResult:
    file_path, _, name = entry.nodeid.partition("::")
    file = PurePosixPath(file_path)
    checkpoint = checkpoint_of(file.name, ordered) or file.stem.removeprefix("test_")
    passed = raw.status == "passed"
    return TestResult(
        id=name,
        checkpoint=checkpoint,
        group_type=group_for(checkpoint, entry.markers, current, custom),
        status=raw.status,
        duration_ms=raw.duration_ms,
        file_path=file_path,
        markers=list(entry.markers),
        failure_message=None if passed or raw.message is None else visible(raw.message, MESSAGE_LIMIT),
        calls=[] if passed else [visible(call, CALL_LIMIT) for call in raw.calls[:MAX_CALLS]],
        output=None if passed or raw.output is None else visible(raw.output, MESSAGE_LIMIT),
    )
