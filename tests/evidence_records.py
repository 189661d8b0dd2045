"""Evidence of one pair, written down by hand."""

from __future__ import annotations

from slop_code.evaluation.evidence import Evidence, PytestExit
from slop_code.evaluation.reports.raw_test import ParsedReport
from slop_code.evaluation.reports.stream import Stream
from slop_code.evaluation.roster import Roster, RosterEntry

SAME = object()


def roster_of(*nodeids):
    return Roster(tuple(RosterEntry(nodeid, ()) for nodeid in nodeids))


def exit_of(exit_code=0, *, pair=1, session_timeout=90.0, error=None):
    return PytestExit(pair=pair, exit_code=exit_code, session_timeout=session_timeout, error=error)


def evidence_of(
    *tests,
    roster=None,
    exit_code=0,
    error=None,
    source="json-report",
    reported_exit=None,
    finished=SAME,
    running=None,
    deselected=(),
    collection_errors=(),
    faults=(),
    **more,
):
    """The roster is that of the reported tests, unless it is given. `finished` is the exit code in the stream."""
    report = ParsedReport(tests, reported_exit, tuple(collection_errors))
    stream = Stream(
        results={test.nodeid: test for test in tests if source == "stream"},
        last_started=running,
        deselected=set(deselected),
        finished=exit_code if finished is SAME else finished,
        faults=list(faults),
    )
    return Evidence(
        roster_of(*(test.nodeid for test in tests)) if roster is None else roster,
        exit_of(exit_code, error=error),
        json_report=report if source == "json-report" else "is missing",
        ctrf=report if source == "ctrf" else "is missing",
        stream=stream,
        **more,
    )
