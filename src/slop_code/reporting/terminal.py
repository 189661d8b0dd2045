"""A result on a terminal: a table and colours where there is one, plain lines elsewhere.

Text that comes from a submission is never markup and never a control sequence.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from slop_code.evaluation.choose import nodeid_of
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.reports.record import shortened as cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.report import CorrectnessResults, TestResult

SHOWN_FAILURES = 10
SHOWN_LINES = 40
SHOWN_WIDTH = 500
SHOWN_TEXT = 1 << 20
SHOWN_DIGEST = 12
STYLES = {"passed": "green", "failed": "red", "error": "magenta", "skipped": "yellow"}


class ResultConsole(Console):
    """Standard output, with nothing coloured that we did not colour."""

    def __init__(self) -> None:
        super().__init__(highlight=False)

    def on_broken_pipe(self) -> None:
        """Rich would end the process with a status of its own."""
        raise BrokenPipeError


def printable(text: str) -> str:
    """Control characters as escapes, so that no output of a submission reaches the terminal as a command."""
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """The same for a name or a reason that stands within a line: breaks are escapes too, and it has an end."""
    return shortened(printable(text).replace("\n", "\\n").replace("\t", "\\t"))


def first_line(text: str) -> str:
    return one_line(next((line for line in text.split("\n") if line.strip()), "").strip())


def many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def in_words(seconds: float) -> str:
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def show(results: CorrectnessResults, policy: Policy, *, every: bool = False, below: Iterable[str] = ()) -> None:
    """`below`: what is said of the whole, before the tests."""
    console = ResultConsole()
    console.print(Text(printable(f"{results.problem_name} {results.checkpoint_name}"), "bold"))
    if console.is_terminal:
        console.print(group_table(results))
    else:
        for name, passed, total in group_rows(results):
            console.print(f"  {name.lower()}: {passed}/{total}")
    for text in below:
        console.print(Text(text, "dim"), soft_wrap=True)
    for text, style in lines(results, policy, every=every):
        console.print(Text(text, style), soft_wrap=True)


def group_rows(results: CorrectnessResults) -> list[tuple[str, int, int]]:
    counts = [(group.value, results.pass_counts[group], results.total_counts[group]) for group in GroupType]
    return [row for row in counts if row[2]]


def group_table(results: CorrectnessResults) -> Table:
    table = Table("group")
    table.add_column("passed", justify="right")
    table.add_column("total", justify="right")
    for name, passed, total in group_rows(results):
        table.add_row(name, str(passed), str(total), style="green" if passed == total else "red")
    return table


def lines(results: CorrectnessResults, policy: Policy, *, every: bool) -> Iterator[tuple[str, str]]:
    """What is said below the counts, each line with its style; `every`: all tests and the phases' times."""
    if results.infrastructure_failure_reason:
        yield f"reason: {printable(results.infrastructure_failure_reason)}", "magenta"
    failures = [test for test in results.tests if test.status != "passed"]
    for test in results.tests if every else failures[:SHOWN_FAILURES]:
        yield (
            f"{test.status.upper()} {test.group_type} {printable(f'{test.file_path}::{test.id}')}",
            STYLES[test.status],
        )
        if test.failure_message != results.infrastructure_failure_reason:
            yield from ((f"    {line}", "") for line in message_lines(test))
    if len(failures) > SHOWN_FAILURES and not every:
        yield f"... and {len(failures) - SHOWN_FAILURES} more that did not pass; -v shows all", "dim"
    for warning in results.warnings:
        yield f"warning: {printable(warning)}", "yellow"
    if every:
        yield "  ".join(f"{name} {seconds:.2f} s" for name, seconds in results.phases.items()), "dim"
    yield verdict(results, policy)


def message_lines(test: TestResult) -> list[str]:
    """The end of a failure message: that is where pytest says what was expected and what came."""
    said = [shortened(line) for line in printable(test.failure_message or "").splitlines()]
    left_out = len(said) - SHOWN_LINES
    return said if left_out <= 0 else [f"[{left_out} lines left out]", *said[-SHOWN_LINES:]]


def shortened(line: str) -> str:
    return line if len(line) <= SHOWN_WIDTH else f"{line[:SHOWN_WIDTH]} [... {len(line) - SHOWN_WIDTH} characters]"


def verdict(results: CorrectnessResults, policy: Policy) -> tuple[str, str]:
    if results.infrastructure_failure:
        return "INFRASTRUCTURE FAILURE: no verdict", "bold magenta"
    passed, total = sum(results.pass_counts.values()), sum(results.total_counts.values())
    if results.deselected:
        return f"PART ONLY, no verdict: {passed} of {total} chosen tests passed, {results.deselected} left out", "bold"
    good = results.passes(policy)
    word = "PASSED" if good else "NOT PASSED"
    return f"{word} ({policy}): {passed} of {total} tests passed", "bold green" if good else "bold red"


def origin(results: CorrectnessResults) -> Iterator[str]:
    """Where a result came from."""
    made, isolation = results.provenance, results.isolation
    pytest = made.test_dependencies.get("pytest", "of an unknown version")
    rules = f" (rules {made.evaluation_version})" if made.evaluation_version else ""
    yield one_line(f"by: slop-code {made.slop_code}{rules}, pytest {pytest}, Python {made.python}, {made.platform}")
    digests = {name: digest for name, digest in made.digests.model_dump().items() if digest}
    yield one_line(f"of: {', '.join(f'{name} {short_digest(digest)}' for name, digest in digests.items())}")
    box = f"{isolation['sandbox']}, network {isolation.get('network', 'unknown')}" if "sandbox" in isolation else "none"
    yield one_line(f"isolation: {box}; tests read from {results.evidence}; {in_words(results.duration)}")
    if made.pytest_args:
        yield one_line(f"pytest arguments: {shlex.join(made.pytest_args)}")
    for attempt in results.attempts:
        yield f"tried before: {first_line(attempt.reason)}"


def short_digest(digest: str) -> str:
    return digest.removeprefix("sha256:")[:SHOWN_DIGEST]


def show_test(results: CorrectnessResults, test: TestResult, place: Path) -> None:
    """`place`: what the result was asked for by."""
    console = ResultConsole()
    for text, style in test_lines(results, test, place):
        console.print(Text(text, style), soft_wrap=True)


def test_lines(results: CorrectnessResults, test: TestResult, place: Path) -> Iterator[tuple[str, str]]:
    """One test in full, each line with its style."""
    name = nodeid_of(test)
    yield printable(f"{test.status.upper()} {test.group_type} {name}"), f"bold {STYLES[test.status]}"
    facts = [f"{results.problem_name} {results.checkpoint_name}", f"test of {test.checkpoint}"]
    facts += [f"{test.duration_ms:.0f} ms", f"markers: {', '.join(test.markers) or 'none'}"]
    yield one_line("; ".join(facts)), "dim"
    if results.infrastructure_failure_reason:
        yield f"no verdict on the checkpoint: {first_line(results.infrastructure_failure_reason)}", "magenta"
    for title, text in (("message", test.failure_message), ("ran", "\n".join(test.calls)), ("printed", test.output)):
        if text:
            yield f"{title}:", "bold"
            yield from ((f"    {line}", "") for line in printable(cut(text, SHOWN_TEXT)).rstrip("\n").split("\n"))
    yield printable(f"again: {shlex.join(['slop-code', 'rerun', str(place), name])}"), "dim"


def show_checks(checks: Sequence[tuple[str, bool, str]]) -> None:
    console = ResultConsole()
    if not console.is_terminal:
        for name, ok, found in checks:
            console.print(Text(f"{'ok' if ok else 'no'} {name}: {found}"), soft_wrap=True)
        return
    table = Table("", "what", "found", show_edge=False)
    for name, ok, found in checks:
        table.add_row(Text("ok", "green") if ok else Text("no", "red"), name, Text(found))
    console.print(table)
