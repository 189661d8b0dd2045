"""Findings of `problems check` as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slop_code._version import __version__
from slop_code.authoring.check.findings import count_by_severity
from slop_code.reporting.text import file_safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slop_code.authoring.check.findings import Finding, Rule
    from slop_code.authoring.check.steps import CheckReport, StepReport

SCHEMA_VERSION = 1


def document(reports: Sequence[CheckReport], status: int) -> dict[str, Any]:
    """`status` is the exit status."""
    return {
        "schema_version": SCHEMA_VERSION,
        "slop_code": __version__,
        "exit_status": status,
        "counts": counts(finding for report in reports for finding in report.findings),
        "problems": [problem_of(report) for report in reports],
    }


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    return {str(severity): count for severity, count in count_by_severity(findings).items()}


def problem_of(report: CheckReport) -> dict[str, Any]:
    return {
        "problem": file_safe(report.problem),
        "path": file_safe(str(report.path)),
        "environment": None if report.environment is None else file_safe(report.environment),
        "seconds": round(sum(step.seconds for step in report.steps), 3),
        "steps": [step_of(step) for step in report.steps],
        "findings": [finding_of(item, step.name) for step in report.steps for item in step.outcome.findings],
        "allowed": [finding_of(item, step.name) for step in report.steps for item in step.allowed],
    }


def step_of(step: StepReport) -> dict[str, Any]:
    return {
        "name": step.name,
        "seconds": round(step.seconds, 3),
        "broken": None if step.broken is None else file_safe(step.broken),
        "blocked": None if step.blocked is None else file_safe(step.blocked),
        "counts": counts(step.outcome.findings),
        "summary": [file_safe(line) for line in step.outcome.summary],
        "facts": dict(step.outcome.facts),
    }


def rule_of(rule: Rule, step: str) -> dict[str, Any]:
    severity = str(rule.severity)
    return {"rule": rule.id, "step": step, "severity": severity, "title": rule.title, "fix": rule.fix}


def finding_of(finding: Finding, step: str) -> dict[str, Any]:
    return {
        "step": step,
        "rule": finding.rule.id,
        "severity": str(finding.severity),
        "file": file_safe(finding.location.file),
        "line": finding.location.line,
        "checkpoint": finding.checkpoint,
        "test": None if finding.test is None else file_safe(finding.test),
        "message": file_safe(finding.message),
        "fix": file_safe(finding.fix),
        "detail": file_safe(finding.detail),
    }
