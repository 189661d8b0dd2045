"""One row a test, for tables of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.reporting.text import file_safe, has_verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slop_code.evaluation.report import TestResult
    from slop_code.runs.read_results import StoredCheckpoint

    ExportRow = dict[str, str | bool | int | float | list[str] | None]

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
    "quarantined": bool,
    "duration_ms": float,
    "message": str,
    "submission_digest": str,
    "tests_digest": str,
    "evaluation_version": str,
    "slop_code": str,
}
"""In their order; texts that are not known are None."""
LARGEST = 2**63 - 1
"""A number that any table holds."""


def rows(entries: Iterable[StoredCheckpoint]) -> Iterator[ExportRow]:
    """A checkpoint without tests has one row too, in which nothing is said of a test."""
    for entry in entries:
        common = _of_checkpoint(entry)
        for test in entry.results.tests if entry.results else []:
            yield {**common, **_of_test(test, verdict=has_verdict(entry.line))}
        if not entry.results or not entry.results.tests:
            yield {**common, "passed": False, "quarantined": False}


def _of_checkpoint(entry: StoredCheckpoint) -> ExportRow:
    line, made = entry.line, entry.results.provenance if entry.results else None
    return {
        **dict.fromkeys(COLUMNS),
        "run": file_safe(line.run),
        "problem": file_safe(line.problem),
        "checkpoint": file_safe(line.checkpoint),
        "order": min(line.order, LARGEST),
        "state": line.state,
        "reason": _known(line.reason),
        "submission_digest": _known(made.digests.submission) if made else None,
        "tests_digest": _known(made.digests.tests) if made else None,
        "evaluation_version": _known(made.evaluation_version) if made else None,
        "slop_code": _known(made.slop_code) if made else None,
    }


def _of_test(test: TestResult, *, verdict: bool) -> ExportRow:
    return {
        "file": file_safe(test.file_path),
        "id": file_safe(test.id),
        "home": file_safe(test.checkpoint),
        "group": str(test.group_type),
        "markers": [file_safe(marker) for marker in test.markers],
        "status": test.status,
        "passed": verdict and test.status == "passed",
        "quarantined": test.quarantined,
        "duration_ms": round(test.duration_ms, 3),
        "message": _known(test.failure_message),
    }


def _known(text: str | None) -> str | None:
    return file_safe(text) if text else None
