"""The folder `evaluation/` of a checkpoint in the format of SlopCodeBench: pytest's output, and its JSON report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from slop_code._io import read_or_none
from slop_code.evaluation.evidence import REPORT_LIMIT, pair_folders, read_roster
from slop_code.evaluation.reports.json_report import parse_json_report
from slop_code.evaluation.reports.raw_test import ReportError
from slop_code.evaluation.result_files.evidence_files import JSON_REPORT
from slop_code.execution.sandbox import LOG, REPORTS_DIR
from slop_code.reporting.text import file_safe, has_verdict
from slop_code.runs.scb.load_result import is_scb
from slop_code.runs.scb.scb_report import EVALUATION_DIR, REPORT_FILE, read_report

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.evaluation.reports.raw_test import ParsedReport
    from slop_code.runs.read_results import StoredCheckpoint

STDOUT, STDERR = "stdout.txt", "stderr.txt"
PASSED = {"duration": 0.0, "outcome": "passed"}


def evaluation_files(entry: StoredCheckpoint) -> dict[str, bytes]:
    """Files of pytest that lie with the result are taken as they are; a report only if it is of this result.

    Without a verdict there is no report, so that nothing takes the checkpoint for evaluated.
    """
    results, folder = entry.results, entry.folder
    if results is None:
        return {}
    files = _source_files(results, folder) if folder else {}
    if has_verdict(entry.line):
        report = files.get(REPORT_FILE) or built_report(results)
        return {STDOUT: b"", STDERR: b"", **files, REPORT_FILE: report}
    return {name: data for name, data in files.items() if name != REPORT_FILE}


def _source_files(results: CorrectnessResults, folder: Path) -> dict[str, bytes]:
    """Names as in the export."""
    evaluation = folder / EVALUATION_DIR
    if not is_scb(results):
        report = read_or_none(folder / REPORTS_DIR / JSON_REPORT, REPORT_LIMIT)
        return {STDOUT: b"".join(_logs(folder)), **_if_known(report, _reported(report), results)}
    if evaluation.is_symlink():
        return {}
    texts = {name: read_or_none(evaluation / name, REPORT_LIMIT) for name in (STDOUT, STDERR)}
    files = {name: data for name, data in texts.items() if data is not None}
    report = read_or_none(evaluation / REPORT_FILE, REPORT_LIMIT)
    return {**files, **_if_known(report, read_report(folder), results)}


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


def _reported(report: bytes | None) -> ParsedReport | str:
    try:
        return parse_json_report(report or b"")
    except ReportError as error:
        return str(error)


def _if_known(report: bytes | None, parsed: ParsedReport | str, results: CorrectnessResults) -> dict[str, bytes]:
    """The report, if it has the tests of this result with the same statuses: a repeated test has another one."""
    expected = {test.nodeid: test.status for test in results.tests}
    if report is None or isinstance(parsed, str) or {test.nodeid: test.status for test in parsed.tests} != expected:
        return {}
    return {REPORT_FILE: report}


def _logs(folder: Path) -> list[bytes]:
    """Output of pytest, which has a log for each pair."""
    roster = read_roster(folder)
    folders = pair_folders(1 if isinstance(roster, str) else roster.pairs)
    logs = (read_or_none(folder / name / LOG, REPORT_LIMIT // len(folders)) for name in folders)
    return [log for log in logs if log is not None]
