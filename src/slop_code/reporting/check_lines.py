"""Output of `problems check`: a line for each step with its findings below, and the current activity.

Names, messages and details come from anywhere: they are escaped and bounded.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from typing import TYPE_CHECKING, TextIO

from slop_code._io import BestEffortStream
from slop_code.authoring.check.check_problem import CheckListener
from slop_code.authoring.check.findings import Severity, count_by_severity
from slop_code.reporting.progress_text import progress_text
from slop_code.reporting.terminal import ResultConsole, print_lines
from slop_code.reporting.text import format_duration, one_line, plural, printable, truncate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from slop_code.authoring.check.findings import Finding, Rule
    from slop_code.authoring.check.steps import CheckReport, StepReport
    from slop_code.execution.progress_events import ProgressEvent
    from slop_code.reporting.terminal import StyledLine

DETAIL_LINES = 20
MAX_LINES = 2000
"""Lines of a detail that is shown in full."""
SUMMARY_LINES = 200
STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
NAME_WIDTH = 10


def heading(problem: str, path: Path, environment: str | None) -> StyledLine:
    where = one_line(environment) if environment is not None else "not known"
    return f"{one_line(problem)} ({one_line(shown_path(path))}, environment {where})", "bold"


def step_lines(step: StepReport, folder: Path, *, every: bool = False) -> Iterator[StyledLine]:
    """`every`: allowed findings, too, and details in full."""
    yield step_line(step)
    yield from _quoted((step.undone or "").strip().split("\n")[1:], every=every)
    yield from ((f"    {truncate(printable(line))}", "dim") for line in _some(step.outcome.summary, SUMMARY_LINES))
    for finding in step.outcome.findings:
        yield from finding_lines(finding, folder, every=every)
    if every:
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


def finding_lines(finding: Finding, folder: Path, *, every: bool = False) -> Iterator[StyledLine]:
    """The first line looks like a compiler's, so that editors can jump to the location."""
    severity = finding.severity
    yield f"{_where(finding, folder)}: {severity}: {one_line(finding.message)} [{finding.rule.id}]", STYLES[severity]
    yield f"    fix: {one_line(finding.fix)}", ""
    detail = finding.detail.rstrip("\n").split("\n") if finding.detail.strip() else []
    yield from _quoted(detail, every=every)


def _quoted(lines: Sequence[str], *, every: bool) -> Iterator[StyledLine]:
    some = _some(lines, MAX_LINES if every else DETAIL_LINES)
    yield from ((f"    | {truncate(printable(line))}", "dim") for line in some)


def _some(lines: Sequence[str], limit: int) -> Iterable[str]:
    left = len(lines) - limit
    return lines if left <= 0 else [*lines[:limit], f"[... {plural(left, 'line')} more; -v or --json has them]"]


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
    """The last line, with the counts of all problems."""
    findings = [finding for report in reports for finding in report.findings]
    undone = sum(len(report.undone) for report in reports)
    start = plural(len(reports), "problem")
    if undone:
        return f"{start}: {counts(findings)}; {plural(undone, 'step')} NOT DONE", "bold magenta"
    return f"{start}: {counts(findings)}", "bold red" if findings else "bold green"


def rule_lines(rule: Rule, step: str) -> Iterator[StyledLine]:
    yield f"{rule.id} ({rule.severity}, step {step})", "bold"
    yield f"  what: {rule.title}", ""
    yield f"  fix: {rule.fix}", ""
    if rule.in_code:
        yield f"  let it pass: # slop-code: allow {rule.id}  REASON", "dim"


class ActivityLine:
    """The current activity: a line of a terminal that the next activity replaces; elsewhere only long activities."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = BestEffortStream(stream)
        self._live = stream.isatty()
        self._lock = threading.Lock()

    def __call__(self, event: ProgressEvent) -> None:
        """Any thread may call this."""
        step = one_line(progress_text(event))
        with self._lock:
            if self._live:
                width = max(20, shutil.get_terminal_size().columns - 4)
                self._stream.write(f"\r\x1b[K· {step[:width]}")
            elif event.is_long:
                self._stream.write(f"· {step}\n")
            self._stream.flush()

    def clear(self) -> None:
        with self._lock:
            if self._live:
                self._stream.write("\r\x1b[K")
                self._stream.flush()


class CheckView:
    def __init__(self, *, quiet: bool, every: bool) -> None:
        """`quiet`: standard output is for a document; `every`: see `step_lines`."""
        self._quiet, self._every = quiet, every
        self._activity = ActivityLine(sys.stderr)
        self._console = ResultConsole()
        self.listener = CheckListener(self._activity, self._began, self._done, self._changed)

    def _began(self, problem: str, path: Path, environment: str | None) -> None:
        self._print([heading(problem, path, environment)])

    def _done(self, step: StepReport, folder: Path) -> None:
        self._print(step_lines(step, folder, every=self._every))

    def _changed(self, line: str) -> None:
        self._activity.clear()
        print(f"· {one_line(line)}", file=sys.stderr, flush=True)

    def end(self, reports: Sequence[CheckReport]) -> None:
        self._print([ending(reports)])

    def _print(self, lines: Iterable[StyledLine]) -> None:
        self._activity.clear()
        if self._quiet:
            return
        with contextlib.suppress(BrokenPipeError):  # a closed pipe does not change the exit status
            print_lines(self._console, lines)
