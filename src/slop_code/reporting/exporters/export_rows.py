"""Rows of exported tables: a row for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.reporting.text import file_safe, has_verdict, rates_of

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
    "strict_rate": float,
    "isolated_rate": float,
    "core_rate": float,
    "agent_cost": float,
    "agent_steps": int,
    "agent_input": int,
    "agent_output": int,
}
"""Columns in their order; unknown texts are None."""
AGENT = [name for name in COLUMNS if name.startswith("agent_")]
MAX_INTEGER = 2**63 - 1
"""Largest number that every table format can hold."""


def rows(entries: Iterable[StoredCheckpoint]) -> Iterator[ExportRow]:
    """A checkpoint without tests has one row, with empty columns for the test."""
    for entry in entries:
        common = _checkpoint_columns(entry)
        for test in entry.results.tests if entry.results else []:
            yield {**common, **_test_columns(test, verdict=has_verdict(entry.line))}
        if not entry.results or not entry.results.tests:
            yield {**common, "passed": False, "quarantined": False}


def _checkpoint_columns(entry: StoredCheckpoint) -> ExportRow:
    line, source = entry.line, entry.results.provenance if entry.results else None
    return {
        **dict.fromkeys(COLUMNS),
        "run": file_safe(line.run),
        "problem": file_safe(line.problem),
        "checkpoint": file_safe(line.checkpoint),
        "order": min(line.order, MAX_INTEGER),
        "state": line.state,
        "reason": _known(line.reason),
        "submission_digest": _known(source.digests.submission) if source else None,
        "tests_digest": _known(source.digests.tests) if source else None,
        "evaluation_version": _known(source.evaluation_version) if source else None,
        "slop_code": _known(source.slop_code) if source else None,
        **{f"{policy}_rate": rate for policy, rate in rates_of(line).items()},
        **{name: getattr(line.agent, name.removeprefix("agent_"), None) for name in AGENT},
    }


def _test_columns(test: TestResult, *, verdict: bool) -> ExportRow:
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
