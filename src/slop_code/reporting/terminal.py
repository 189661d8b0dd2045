"""A result on a terminal: tables where there is one, plain lines elsewhere.

Text that comes from a submission is never markup and never a control sequence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from slop_code.evaluation.groups import GroupType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.evaluation.policy import PassPolicy
    from slop_code.evaluation.report import CorrectnessResults, TestResult

SHOWN_FAILURES = 10
SHOWN_LINES = 40
STYLES = {"passed": "green", "failed": "red", "error": "magenta", "skipped": "yellow"}


def printable(text: str) -> str:
    """Control characters as escapes, so that no output of a submission reaches the terminal as a command."""
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def verdict_line(results: CorrectnessResults, policy: PassPolicy) -> str:
    if results.infrastructure_failure:
        return "INFRASTRUCTURE FAILURE: no verdict"
    done, total = sum(results.pass_counts.values()), sum(results.total_counts.values())
    word = "PASSED" if results.passed[policy] else "NOT PASSED"
    return f"{word} ({policy.value}): {done} of {total} tests passed"


def group_rows(results: CorrectnessResults) -> list[tuple[str, int, int]]:
    return [(group.value, results.pass_counts[group], results.total_counts[group]) for group in GroupType]


def failures(results: CorrectnessResults) -> list[TestResult]:
    return [test for test in results.tests if test.status in ("failed", "error")]


def plain_lines(results: CorrectnessResults, policy: PassPolicy, *, every: bool) -> Iterator[str]:
    yield f"{results.problem_name} {results.checkpoint_name}"
    for name, passed, total in group_rows(results):
        if total:
            yield f"  {name.lower()}: {passed}/{total}"
    if results.infrastructure_failure_reason:
        yield f"reason: {printable(results.infrastructure_failure_reason)}"
    shown = results.tests if every else failures(results)[:SHOWN_FAILURES]
    for test in shown:
        yield f"{test.status.upper()} {test.group_type.value} {test.file_path}::{printable(test.id)}"
        if test.failure_message and test.status in ("failed", "error"):
            yield from (f"    {line}" for line in message_lines(test))
    hidden = len(failures(results)) - SHOWN_FAILURES
    if hidden > 0 and not every:
        yield f"... and {hidden} more that did not pass; -v shows all"
    yield from (f"warning: {printable(warning)}" for warning in results.warnings)
    yield verdict_line(results, policy)


def message_lines(test: TestResult) -> list[str]:
    """The end of a failure message: that is where pytest says what was expected and what came."""
    lines = printable(test.failure_message or "").splitlines()
    left_out = len(lines) - SHOWN_LINES
    return lines if left_out <= 0 else [f"[{left_out} lines left out]", *lines[-SHOWN_LINES:]]


def show(results: CorrectnessResults, policy: PassPolicy, *, every: bool = False) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        for line in plain_lines(results, policy, every=every):
            console.print(Text(line), soft_wrap=True)
        return
    table = Table(title=f"{escape(results.problem_name)} · {escape(results.checkpoint_name)}", title_justify="left")
    table.add_column("group")
    table.add_column("passed", justify="right")
    table.add_column("total", justify="right")
    for name, passed, total in group_rows(results):
        style = "dim" if not total else "green" if passed == total else "red"
        table.add_row(name, str(passed), str(total), style=style)
    console.print(table)
    if results.infrastructure_failure_reason:
        console.print(Text(printable(results.infrastructure_failure_reason), style="magenta"))
    shown = results.tests if every else failures(results)[:SHOWN_FAILURES]
    for test in shown:
        head = Text(f"{test.status:7} ", style=STYLES[test.status])
        console.print(head + Text(f"{test.group_type.value:13} {test.file_path}::{printable(test.id)}", style="bold"))
        if test.failure_message and test.status in ("failed", "error"):
            console.print(Text("\n".join(f"    {line}" for line in message_lines(test))))
    hidden = len(failures(results)) - SHOWN_FAILURES
    if hidden > 0 and not every:
        console.print(f"… and {hidden} more that did not pass; -v shows all", style="dim")
    for warning in results.warnings:
        console.print(Text(f"warning: {printable(warning)}", style="yellow"))
    style = "magenta" if results.infrastructure_failure else "green" if results.passed[policy] else "red"
    console.print(Text(verdict_line(results, policy), style=f"bold {style}"))


def show_checks(checks: Sequence[tuple[str, bool, str]]) -> None:
    console = Console(highlight=False)
    table = Table("", "what", "found", show_edge=False)
    for name, ok, found in checks:
        table.add_row(Text("ok", "green") if ok else Text("no", "red"), name, Text(found))
        if not console.is_terminal:
            console.print(Text(f"{'ok' if ok else 'no'} {name}: {found}"), soft_wrap=True)
    if console.is_terminal:
        console.print(table)
