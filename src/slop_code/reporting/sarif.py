"""Findings of `problems check` as SARIF 2.1.0, which editors and code hosts read."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from slop_code._version import __version__
from slop_code.authoring.check.steps import step as step_named
from slop_code.reporting.text import file_safe, one_line, truncate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from slop_code.authoring.check.findings import Finding, Rule
    from slop_code.authoring.check.steps import CheckReport, StepReport

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "SRCROOT"
MESSAGE = 8000


def sarif(reports: Sequence[CheckReport], status: int, folder: Path) -> dict[str, Any]:
    """`status` is the exit status; locations inside of `folder` are relative to it."""
    names = list(dict.fromkeys(step.name for report in reports for step in report.steps))
    rules = [(name, rule) for name in names for rule in step_named(name).rules]
    indices = {rule.id: index for index, (_, rule) in enumerate(rules)}
    driver = {"name": "slop-code", "version": __version__, "rules": [_rule(name, rule) for name, rule in rules]}
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "slop-code/problems-check/"},
        "originalUriBaseIds": {ROOT: {"uri": _file_uri(folder, is_folder=True)}},
        "invocations": [_invocation(reports, status, folder)],
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(finding, report, indices, folder, allowed=allowed)
            for report in reports
            for step in report.steps
            for allowed, findings in ((False, step.outcome.findings), (True, step.allowed))
            for finding in findings
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(step: str, rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": f"{rule.title}."},
        "help": {"text": rule.fix or rule.title},
        "defaultConfiguration": {"level": str(rule.severity)},
        "properties": {"tags": [step]},
    }


def _invocation(reports: Sequence[CheckReport], status: int, folder: Path) -> dict[str, Any]:
    return {
        "executionSuccessful": not any(report.undone for report in reports),
        "exitCode": status,
        "workingDirectory": {"uri": _file_uri(folder, is_folder=True)},
        "toolExecutionNotifications": [_undone(report, step) for report in reports for step in report.undone],
    }


def _undone(report: CheckReport, step: StepReport) -> dict[str, Any]:
    reason = truncate(file_safe(step.undone or ""), MESSAGE)
    return {
        "level": "error",
        "message": {"text": f"{one_line(report.problem)}: the step {step.name} could not be done: {reason}"},
    }


def _result(
    finding: Finding, report: CheckReport, indices: Mapping[str, int], folder: Path, *, allowed: bool
) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(report.path / finding.location.file, folder)}
    if finding.location.line is not None:
        physical["region"] = {"startLine": max(1, finding.location.line)}
    about = {"problem": report.problem, "checkpoint": finding.checkpoint, "test": finding.test}
    result = {
        "ruleId": finding.rule.id,
        "ruleIndex": indices[finding.rule.id],
        "level": str(finding.severity),
        "message": {"text": truncate(file_safe(f"{finding.message}\n{finding.fix}".strip()), MESSAGE)},
        "locations": [{"physicalLocation": physical}],
        "partialFingerprints": {"slopCodeFinding/v1": fingerprint(finding, report.problem)},
        "properties": {name: file_safe(value) for name, value in about.items() if value},
    }
    return result | ({"suppressions": [{"kind": "inSource"}]} if allowed else {})


def fingerprint(finding: Finding, problem: str) -> str:
    """Fingerprint of a finding, which depends neither on its line in the file nor on measured values."""
    what = [problem, finding.rule.id, finding.location.file, finding.checkpoint or "", finding.test or ""]
    if finding.test is None:
        what.append(finding.message)
    return hashlib.sha256("\0".join(what).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _artifact(path: Path, folder: Path) -> dict[str, str]:
    inside = os.path.relpath(path, folder)
    if inside.startswith(".."):
        return {"uri": _file_uri(path)}
    return {"uri": quote(os.fsencode(inside)), "uriBaseId": ROOT}


def _file_uri(path: Path, *, is_folder: bool = False) -> str:
    absolute = os.path.abspath(path).rstrip("/")
    return f"file://{quote(os.fsencode(absolute))}" + ("/" if is_folder else "")
