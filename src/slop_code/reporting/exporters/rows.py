"""One row a test, for tables of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.reporting.exporters.wording import counts, safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slop_code.evaluation.report import TestResult
    from slop_code.runs.results import Entry

    Row = dict[str, str | bool | int | float | list[str] | None]

COLUMNS: dict[str, type] = {
    "run": str,
    "problem": str,
    "checkpoint": str,
    "order": int,
    "state": str,
    "reason": str,
    "file": str,
    "id": str,
    "home": str,
    "group": str,
    "markers": list,
    "status": str,
    "passed": bool,
    "duration_ms": float,
    "message": str,
    "submission_digest": str,
    "tests_digest": str,
    "evaluation_version": str,
    "slop_code": str,
}
"""In their order; texts that are not known are None."""


def rows(entries: Iterable[Entry]) -> Iterator[Row]:
    """A checkpoint without tests has one row too, in which nothing is said of a test."""
    for entry in entries:
        common = _of_checkpoint(entry)
        for test in entry.results.tests if entry.results else []:
            yield {**common, **_of_test(test, verdict=counts(entry.line))}
        if not entry.results or not entry.results.tests:
            yield {**common, "passed": False}


def _of_checkpoint(entry: Entry) -> Row:
    line, made = entry.line, entry.results.provenance if entry.results else None
    return {
        **dict.fromkeys(COLUMNS),
        "run": safe(line.run),
        "problem": safe(line.problem),
        "checkpoint": safe(line.checkpoint),
        "order": line.order,
        "state": line.state,
        "reason": safe(line.reason) if line.reason else None,
        "submission_digest": made.digests.submission if made else None,
        "tests_digest": made.digests.tests if made else None,
        "evaluation_version": made.evaluation_version or None if made else None,
        "slop_code": made.slop_code if made else None,
    }


def _of_test(test: TestResult, *, verdict: bool) -> Row:
    return {
        "file": safe(test.file_path),
        "id": safe(test.id),
        "home": safe(test.checkpoint),
        "group": str(test.group_type),
        "markers": [safe(marker) for marker in test.markers],
        "status": test.status,
        "passed": verdict and test.status == "passed",
        "duration_ms": round(test.duration_ms, 3),
        "message": safe(test.failure_message) if test.failure_message else None,
    }
