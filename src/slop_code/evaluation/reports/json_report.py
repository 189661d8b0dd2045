"""Report of pytest-json-report: an entry per test with its three stages, durations in seconds."""

from __future__ import annotations

import ast
from typing import Any

from slop_code.evaluation.reports.raw_test import (
    XPASSED,
    ParsedReport,
    RawTest,
    ReportError,
    Status,
    count_mismatch,
    duration_in,
    load_object,
    member,
    objects,
    optional_text,
    require_unique,
    status_of,
)
from slop_code.evaluation.roster import normal_nodeid

_STAGES = ("setup", "call", "teardown")


def parse_json_report(data: bytes) -> ParsedReport:
    return parse_json_document(load_object(data))


def parse_json_document(document: dict[str, Any]) -> ParsedReport:
    exit_code = document.get("exitcode")
    if isinstance(exit_code, bool) or not isinstance(exit_code, int | None):
        raise ReportError(f"exitcode is {type(exit_code).__name__}, not int")
    tests = objects(document, "tests", "report")
    collectors = objects(document, "collectors", "report") if "collectors" in document else []
    return ParsedReport(
        tests=require_unique(_test(entry, f"tests[{index}]") for index, entry in enumerate(tests)),
        exit_code=exit_code,
        collection_errors=tuple(
            f"{entry.get('nodeid')}: {optional_text(entry, 'longrepr') or 'no message'}"
            for entry in collectors
            if entry.get("outcome") == "failed"
        ),
        miscounted=count_mismatch((entry["outcome"] for entry in tests), document.get("summary"), "total"),
    )


def _test(entry: dict[str, Any], where: str) -> RawTest:
    nodeid = member(entry, "nodeid", str, where)
    outcome = member(entry, "outcome", str, where)
    stages = {name: member(entry, name, dict, where) for name in _STAGES if name in entry}
    outcomes = {name: member(stage, "outcome", str, f"{where}.{name}") for name, stage in stages.items()}
    seconds = sum(duration_in(stage, "duration", f"{where}.{name}") for name, stage in stages.items())
    status = _status(outcome, outcomes)
    return RawTest(
        nodeid=normal_nodeid(nodeid),
        status=status,
        duration_ms=1000 * (seconds or duration_in(entry, "duration", where)),
        message=None if status == "passed" else _message(outcome, status, stages),
        xpassed=outcome == "xpassed" and status == "failed",
    )


def _status(outcome: str, stages: dict[str, str]) -> Status:
    """A test passed only if each of its stages passed."""
    if "failed" in (stages.get("setup"), stages.get("teardown")):
        return "error"
    status = status_of(outcome)
    if status == "passed" and any(stages.get(name) != "passed" for name in _STAGES):
        return "error"
    return status


def _message(outcome: str, status: Status, stages: dict[str, Any]) -> str | None:
    if outcome == "xpassed" and status == "failed":
        return XPASSED
    bad = [name for name in _STAGES if stages.get(name, {}).get("outcome") not in (None, "passed")]
    texts = [(name, optional_text(stages[name], "longrepr")) for name in bad]
    parts = [
        _reason(text) if name == "call" or status == "skipped" else f"{name}: {text}" for name, text in texts if text
    ]
    if not parts and status == "error":
        shown = ", ".join(
            f"{name} {stages[name].get('outcome')}" if name in stages else f"no {name}" for name in _STAGES
        )
        return f"reported as {outcome!r} with {shown}"
    return "\n".join(parts) or None


def _reason(longrepr: str) -> str:
    """A skip is reported as the text of a tuple of file, line and reason."""
    if not longrepr.startswith("(") or len(longrepr) > 10_000:
        return longrepr
    try:
        value = ast.literal_eval(longrepr)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return longrepr
    is_skip = isinstance(value, tuple) and len(value) == 3 and isinstance(value[2], str)
    return value[2].removeprefix("Skipped: ") if is_skip else longrepr
