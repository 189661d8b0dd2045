"""CTRF, the Common Test Report Format. The summary is written last, when all tests were read."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, BinaryIO

from slop_code._version import __version__
from slop_code.reporting.failures.headline import headline
from slop_code.reporting.resource_text import limit_lines
from slop_code.reporting.text import file_safe, has_verdict, no_verdict_text, rates_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.report import TestResult
    from slop_code.runs.checkpoint_lines import CheckpointLine
    from slop_code.runs.read_results import StoredCheckpoint

SPEC_VERSION = "0.0.0"
STATUSES = {"passed": "passed", "failed": "failed", "error": "failed", "skipped": "skipped"}
"""CTRF has no status for errors; `rawStatus` has ours."""
OTHER = "other"
AGENT = ("cost", "steps", "input", "output")
"""Figures of the agent's work."""


def export(entries: Iterable[StoredCheckpoint], out: BinaryIO, policy: Policy) -> None:
    tool = {"name": "slop-code", "version": __version__}
    head = {"reportFormat": "CTRF", "specVersion": SPEC_VERSION, "generatedBy": "slop-code"}
    statuses: Counter[str] = Counter()
    duration, checkpoints, comma = 0.0, [], ""
    out.write(f'{_json(head)[:-1]},"results":{{"tool":{_json(tool)},"tests":['.encode("ascii"))
    for entry in entries:
        checkpoints.append(checkpoint(entry, policy))
        for test in tests_of(entry):
            statuses[test["status"]] += 1
            out.write(f"{comma}\n{_json(test)}".encode("ascii"))
            comma = ","
        duration += sum(test.duration_ms for test in entry.results.tests) if entry.results else 0.0
    total = summary(statuses, len(checkpoints), round(duration))
    extra = {"policy": file_safe(policy), "checkpoints": checkpoints}
    out.write(f'\n],"summary":{_json(total)},"extra":{_json(extra)}}}}}\n'.encode("ascii"))


def tests_of(entry: StoredCheckpoint) -> Iterator[dict[str, Any]]:
    if entry.results:
        yield from (test_record(test, entry.line) for test in entry.results.tests)
    if not has_verdict(entry.line):
        line = entry.line
        yield {
            "name": "(checkpoint)",
            "status": OTHER,
            "rawStatus": line.state,
            "duration": 0,
            "suite": _suite(line),
            "message": headline(no_verdict_text(line)),
            "trace": file_safe(line.reason or ""),
        }


def test_record(test: TestResult, line: CheckpointLine) -> dict[str, Any]:
    checkpoint_name, nodeid = f"{line.problem}/{line.checkpoint}", test.nodeid
    record: dict[str, Any] = {
        "testId": file_safe(f"{checkpoint_name}/{nodeid}"),
        "executionId": file_safe(f"{line.run}/{checkpoint_name}/{nodeid}"),
        "name": file_safe(test.id) or "(no name)",
        "status": STATUSES[test.status] if has_verdict(line) and not test.quarantined else OTHER,
        "rawStatus": test.status,
        "duration": round(test.duration_ms),
        "suite": [*_suite(line), file_safe(test.file_path)],
        "filePath": file_safe(test.file_path),
        "tags": [str(test.group_type), *map(file_safe, test.markers)],
        "labels": {
            "run": file_safe(line.run),
            "problem": file_safe(line.problem),
            "checkpoint": file_safe(line.checkpoint),
            "group": str(test.group_type),
            "home": file_safe(test.checkpoint),
        },
    }
    if test.quarantined:
        record["flaky"] = True
    if test.failure_message:
        record |= {"message": headline(test.failure_message), "trace": file_safe(test.failure_message)}
    if test.output:
        record["stdout"] = file_safe(test.output).split("\n")
    lines = {"calls": test.calls, "limits": limit_lines(test)}
    if any(lines.values()):
        record["extra"] = {name: [file_safe(line) for line in texts] for name, texts in lines.items() if texts}
    return record


def summary(statuses: Counter[str], suites: int, duration: int) -> dict[str, int]:
    """Results have no time stamps: the times start at 0 and end after the duration of all tests together."""
    kinds = {status: statuses[status] for status in ("passed", "failed", "skipped", "pending", "other")}
    times = {"start": 0, "stop": duration, "duration": duration}
    return {"tests": statuses.total(), **kinds, "suites": suites, **times}


def checkpoint(entry: StoredCheckpoint, policy: Policy) -> dict[str, Any]:
    line = entry.line
    return {
        **{name: file_safe(getattr(line, name)) for name in ("run", "problem", "checkpoint")},
        "order": line.order,
        "state": line.state,
        "reason": file_safe(line.reason) if line.reason else None,
        "passed": line.passes(policy),
        "rates": rates_of(line),
        "agent": line.agent.model_dump(include=set(AGENT)) if line.agent else None,
        "regressions": line.regressions.model_dump() if line.regressions else None,
        "digests": line.digests.model_dump() if line.digests else None,
        "evaluation_version": line.evaluation_version,
    }


def _suite(line: CheckpointLine) -> list[str]:
    return [file_safe(line.run), file_safe(line.problem), file_safe(line.checkpoint)]


def _json(value: Any) -> str:
    """Only ASCII, as in our other files."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
