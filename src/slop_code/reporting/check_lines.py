"""Output of `problems check`: a line for each step with its findings below.

Names, messages and details come from anywhere: they are escaped and bounded.
"""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from slop_code._safe_text import decoded_name
from slop_code._suggestions import first_names
from slop_code.authoring.check.check_problem import CheckListener
from slop_code.authoring.check.findings import Severity, count_by_severity
from slop_code.authoring.check.steps import STEPS
from slop_code.reporting.terminal import ResultConsole, print_lines
from slop_code.reporting.text import format_duration, one_line, plural, printable, shell_word, truncate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from slop_code.authoring.check.findings import Finding, Rule
    from slop_code.authoring.check.steps import CheckReport, StepReport
    from slop_code.reporting.progress.status_line import StatusLine
    from slop_code.reporting.terminal import StyledLine

DETAIL_LINES = 20
SHOWN_TESTS = 3
"""Names of tests that failed for the same reason."""
MAX_LINES = 2000
"""Lines of a detail that is shown in full."""
SUMMARY_LINES = 200
STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
NAME_WIDTH = 10


def heading(problem: str, path: Path, environment: str | None) -> StyledLine:
    where = one_line(environment) if environment is not None else "not known"
    return f"{one_line(problem)} ({one_line(shown_path(path))}, environment {where})", "bold"


def step_lines(step: StepReport, folder: Path, *, verbose: bool = False) -> Iterator[StyledLine]:
    """`verbose` adds allowed findings, and shows details in full."""
    yield step_line(step)
    yield from _quoted((step.undone or "").strip().split("\n")[1:], verbose=verbose)
    summary = _some(step.outcome.summary, SUMMARY_LINES, "--json has them")
    yield from ((f"    {truncate(printable(line))}", "dim") for line in summary)
    for findings in [[finding] for finding in step.outcome.findings] if verbose else _by_cause(step.outcome.findings):
        if len(findings) > 1:
            yield from _group_lines(findings, folder)
        else:
            yield from finding_lines(findings[0], folder, verbose=verbose)
    if verbose:
        for finding in step.allowed:
            yield f"{_where(finding, folder)}: allowed: {one_line(finding.message)} [{finding.rule.id}]", "dim"


def step_line(step: StepReport) -> StyledLine:
    start, took = f"  {step.name:{NAME_WIDTH}}", f"  {format_duration(step.seconds)}"
    if step.undone is not None:
        reason = step.undone.strip().partition("\n")[0]
        return f"{start} NOT DONE: {one_line(reason)}", "bold magenta" if step.broken is not None else "red"
    findings = step.outcome.findings
    allowed = f" ({len(step.allowed)} allowed)" if step.allowed else ""
    if not findings:
        return f"{start} ok{allowed}{took}", "green"
    return f"{start} {counts(findings)}{allowed}{took}", STYLES[max(finding.severity for finding in findings)]


def _by_cause(findings: Sequence[Finding]) -> Iterable[list[Finding]]:
    """Findings about several tests that failed for the same reason are one group."""
    groups: dict[object, list[Finding]] = {}
    for finding in findings:
        key = (finding.rule.id, finding.severity, finding.shared_cause) if finding.shared_cause else id(finding)
        groups.setdefault(key, []).append(finding)
    return groups.values()


def _group_lines(findings: Sequence[Finding], folder: Path) -> Iterator[StyledLine]:
    """In the words of the first finding; the others are only named."""
    first = findings[0]
    yield from finding_lines(replace(first, message=f"{len(findings)} tests {first.shared_cause}"), folder)
    names = first_names([finding.test or "" for finding in findings], SHOWN_TESTS)
    yield f"    tests: {one_line(names)}; -v shows each", ""


def finding_lines(finding: Finding, folder: Path, *, verbose: bool = False) -> Iterator[StyledLine]:
    """The first line looks like a compiler's, so that editors can jump to the location."""
    severity = finding.severity
    yield f"{_where(finding, folder)}: {severity}: {one_line(finding.message)} [{finding.rule.id}]", STYLES[severity]
    yield f"    fix: {one_line(finding.fix)}", ""
    detail = finding.detail.rstrip("\n").split("\n") if finding.detail.strip() else []
    yield from _quoted(detail, verbose=verbose)


def _quoted(lines: Sequence[str], *, verbose: bool) -> Iterator[StyledLine]:
    where = "--json has them" if verbose else "-v or --json has them"
    some = _some(lines, MAX_LINES if verbose else DETAIL_LINES, where)
    yield from ((f"    | {truncate(printable(line))}", "dim") for line in some)


def _some(lines: Sequence[str], limit: int, where: str) -> Iterable[str]:
    """The first lines. `where` says how to get the others."""
    left = len(lines) - limit
    return lines if left <= 0 else [*lines[:limit], f"[... {plural(left, 'line')} more; {where}]"]


def _where(finding: Finding, folder: Path) -> str:
    line = "" if finding.location.line is None else f":{finding.location.line}"
    return one_line(shown_path(folder / finding.location.file)) + line


def shown_path(path: Path) -> str:
    """Relative to the working directory, unless the path lies outside of it."""
    inside = os.path.relpath(path)
    return os.path.abspath(path) if inside.startswith("..") else inside


def counts(findings: Iterable[Finding]) -> str:
    """Such as `2 errors, 1 note`."""
    some = [plural(count, str(severity)) for severity, count in count_by_severity(findings).items() if count]
    return ", ".join(some) or "nothing found"


def ending(reports: Sequence[CheckReport]) -> StyledLine:
    """The counts of all problems."""
    findings = [finding for report in reports for finding in report.findings]
    undone = sum(len(report.undone) for report in reports)
    start = plural(len(reports), "problem")
    if undone:
        return f"{start}: {counts(findings)}; {plural(undone, 'step')} NOT DONE", "bold magenta"
    return f"{start}: {counts(findings)}", "bold red" if findings else "bold green"


def next_step(reports: Sequence[CheckReport], *, all_checkpoints: bool = True) -> StyledLine:
    """The last line: what to do now about the first problem that needs it."""
    for report in reports:
        if text := _next_for(report, all_checkpoints=all_checkpoints):
            return f"next: {text}", "bold"
    word = _shell_path(reports[0]) if len(reports) == 1 else "PROBLEM"
    return f"ready: slop-code eval-snapshot SUBMISSION -p {word} -c CHECKPOINT", "bold"


def _next_for(report: CheckReport, *, all_checkpoints: bool) -> str | None:
    """None where all steps were done on all checkpoints, without errors and warnings."""
    word, count = _shell_path(report), count_by_severity(report.findings)
    again = f"slop-code problems check {word}"
    if report.broken:
        return f"slop-code doctor, as this machine could not do the step {report.broken[0].name}; then {again}"
    if count[Severity.ERROR]:
        return _fix_errors(report, again)
    if report.undone:
        return f"fix what blocks the step {report.undone[0].name}; then {again}"
    if count[Severity.WARNING]:
        return f"fix or allow {_the(count[Severity.WARNING], 'warning')} of {one_line(report.problem)}; then {again}"
    if not all_checkpoints or {step.name for step in report.steps} != set(STEPS):
        return f"{again}, for all steps{'' if all_checkpoints else ' and checkpoints'}"
    return None


def _fix_errors(report: CheckReport, again: str) -> str:
    """A reference that does not pass is best looked at in `problems run`, unless an earlier step found errors."""
    errors = [
        (step.name, finding)
        for step in report.steps
        for finding in step.outcome.findings
        if finding.severity is Severity.ERROR
    ]
    name, first = errors[0]
    if name == "reference" and first.checkpoint is not None:
        checkpoint = shell_word(decoded_name(first.checkpoint))
        return f"slop-code problems run {_shell_path(report)} -c {checkpoint}, which shows how the reference fails"
    return f"fix {_the(len(errors), 'error')} of {one_line(report.problem)} first; then {again}"


def _the(count: int, word: str) -> str:
    return f"the {word}" if count == 1 else f"these {count} {word}s"


def _shell_path(report: CheckReport) -> str:
    return shell_word(decoded_name(shown_path(report.path)))


def rule_lines(rule: Rule, step: str) -> Iterator[StyledLine]:
    yield f"{rule.id} ({rule.severity}, step {step})", "bold"
    yield f"  what: {rule.title}", ""
    yield f"  fix: {rule.fix}", ""
    if rule.in_code:
        yield f"  let it pass: # slop-code: allow {rule.id}  REASON", "dim"


class CheckView:
    def __init__(self, status: StatusLine, *, quiet: bool, verbose: bool) -> None:
        """With `quiet`, standard output is for a document. `verbose` is that of `step_lines`."""
        self._quiet, self._verbose = quiet, verbose
        self._status = status
        self._console = ResultConsole()
        self.listener = CheckListener(status, self._began, self._done, self._changed)

    def _began(self, problem: str, path: Path, environment: str | None) -> None:
        self._print([heading(problem, path, environment)])

    def _done(self, step: StepReport, folder: Path) -> None:
        self._print(step_lines(step, folder, verbose=self._verbose))

    def _changed(self, line: str) -> None:
        with self._status.hidden():
            print(f"· {one_line(line)}", file=sys.stderr, flush=True)

    def end(self, reports: Sequence[CheckReport], *, all_checkpoints: bool) -> None:
        self._print([ending(reports), next_step(reports, all_checkpoints=all_checkpoints)])

    def _print(self, lines: Iterable[StyledLine]) -> None:
        if self._quiet:
            return
        # A closed pipe does not change the exit status.
        with self._status.hidden(), contextlib.suppress(BrokenPipeError):
            print_lines(self._console, lines)
