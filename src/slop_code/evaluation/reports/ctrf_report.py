"""Report of pytest-json-ctrf: node ids as names, durations in milliseconds, markers as tags."""

from __future__ import annotations

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


def parse_ctrf(data: bytes) -> ParsedReport:
    """The format has neither pytest's exit code nor collection errors."""
    results = member(load_object(data), "results", dict, "report")
    tests = objects(results, "tests", "results")
    records = (_test(entry, f"tests[{index}]") for index, entry in enumerate(tests))
    return ParsedReport(
        tests=require_unique(records),
        exit_code=None,
        collection_errors=(),
        miscounted=count_mismatch((entry["status"] for entry in tests), results.get("summary"), "tests"),
    )


def _test(entry: dict[str, Any], where: str) -> RawTest:
    tags = entry.get("tags") or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ReportError(f"{where}: tags is not a list of names")
    status = _status(member(entry, "status", str, where), entry.get("rawStatus"))
    xpassed = status == "passed" and any(_expects_failure(tag) for tag in tags)
    message = optional_text(entry, "trace") or optional_text(entry, "message")
    return RawTest(
        nodeid=_nodeid(entry, where),
        status="failed" if xpassed else status,
        duration_ms=duration_in(entry, "duration", where),
        markers=tuple(dict.fromkeys(tag.partition("::")[0] for tag in tags)),
        message=XPASSED if xpassed else None if status == "passed" else message,
        xpassed=xpassed,
    )


def _status(status: str, raw: Any) -> Status:
    outside = isinstance(raw, str) and raw.startswith(("setup_", "teardown_"))
    return "error" if status == "failed" and outside else status_of(status)


def _expects_failure(tag: str) -> bool:
    """The plugin reports an unexpected pass as a pass; only the tag of the marker shows the difference."""
    return tag == "xfail" or (tag.startswith("xfail::") and not tag.startswith("xfail::False"))


def _nodeid(entry: dict[str, Any], where: str) -> str:
    """Other writers of the format store the file in a field of its own."""
    name = member(entry, "name", str, where)
    if name.partition("[")[0].partition("::")[0].endswith(".py"):
        return normal_nodeid(name)
    return normal_nodeid(f"{member(entry, 'filePath', str, where)}::{name}")
