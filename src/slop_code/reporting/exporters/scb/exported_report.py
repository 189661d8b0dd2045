"""The folder `evaluation/` of a checkpoint in the format of SlopCodeBench: pytest's output, and its JSON report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from slop_code._io import TooLargeError, read_bounded
from slop_code.evaluation.evidence import JSON_REPORT, REPORT_LIMIT, pair_folders, read_roster
from slop_code.evaluation.reports.json_report import parse_json_report
from slop_code.evaluation.reports.raw_test import ReportError
from slop_code.execution.sandbox import LOG, REPORTS_DIR
from slop_code.reporting.text import file_safe

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.report import CorrectnessResults, TestResult

STDOUT, STDERR, REPORT = "stdout.txt", "stderr.txt", "report.json"
PASSED = {"duration": 0.0, "outcome": "passed"}


def evaluation_files(results: CorrectnessResults, source: Path | None) -> dict[str, bytes]:
    """`source`: the folder of the result. Files of pytest in it are taken as they are, if they are of this result."""
    report = read_file(source / REPORTS_DIR / JSON_REPORT) if source else None
    return {
        STDOUT: b"".join(_logs(source)) if source else b"",
        STDERR: b"",
        REPORT: report if report and _is_report_of(report, results) else built_report(results),
    }


def read_file(path: Path, limit: int = REPORT_LIMIT) -> bytes | None:
    """None where there is no regular file of at most so many bytes."""
    try:
        return read_bounded(path, limit)
    except (OSError, TooLargeError):
        return None


def built_report(results: CorrectnessResults) -> bytes:
    """A report as pytest-json-report writes it. Results have no time stamp: `created` is 0."""
    tests = [_report_entry(test) for test in results.tests]
    outcomes = [entry["outcome"] for entry in tests]
    summary = {name: outcomes.count(name) for name in dict.fromkeys(outcomes)}
    document = {
        "created": 0.0,
        "duration": results.duration,
        "exitcode": results.pytest_exit_code,
        "root": "",
        "environment": {},
        "summary": {**summary, "total": len(tests), "collected": len(tests)},
        "tests": tests,
    }
    return json.dumps(document, indent=2, allow_nan=False).encode("ascii")


def _report_entry(test: TestResult) -> dict[str, Any]:
    """The stage that did not pass has the message: set-up for an error or a skip, else the call."""
    name = file_safe(test.nodeid)
    stages: dict[str, Any] = {"setup": PASSED, "call": {**PASSED, "duration": test.duration_ms / 1000}}
    if test.status != "passed":
        stage = "call" if test.status == "failed" else "setup"
        outcome = "skipped" if test.status == "skipped" else "failed"
        stages = stages if stage == "call" else {}
        stages[stage] = {"duration": test.duration_ms / 1000, "outcome": outcome}
        stages[stage]["longrepr"] = file_safe(test.failure_message or test.status)
        if test.output:
            stages[stage]["stdout"] = file_safe(test.output)
    keywords = [file_safe(test.id), *map(file_safe, test.markers)]
    return {"nodeid": name, "outcome": test.status, "keywords": keywords, **stages, "teardown": PASSED}


def _is_report_of(data: bytes, results: CorrectnessResults) -> bool:
    """Whether the report has the tests of this result with the same statuses: a repeated test has another one."""
    try:
        reported = parse_json_report(data)
    except ReportError:
        return False
    return {test.nodeid: test.status for test in reported.tests} == {test.nodeid: test.status for test in results.tests}


def _logs(folder: Path) -> list[bytes]:
    """Output of pytest, which has a log for each pair."""
    roster = read_roster(folder)
    folders = pair_folders(1 if isinstance(roster, str) else roster.pairs)
    logs = (read_file(folder / name / LOG, REPORT_LIMIT // len(folders)) for name in folders)
    return [log for log in logs if log is not None]
