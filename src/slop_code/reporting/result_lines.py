"""One result on standard output: a table and colours on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.reports.raw_test import shortened
from slop_code.reporting.headline import headline
from slop_code.reporting.terminal import ResultConsole, print_lines
from slop_code.reporting.text import first_line, format_duration, one_line, plural, printable, shell_word, truncate
from slop_code.runs.run_layout import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.reporting.terminal import StyledLine

SHOWN_FAILURES = 10
"""With their messages."""
LISTED_FAILURES = 50
"""With a line each."""
LISTED_WIDTH = 160
"""Characters of that line after the name."""
SHOWN_LINES = 40
SHOWN_TEXT = 1 << 20
SHOWN_DIGEST = 12
STYLES = {"passed": "green", "failed": "red", "error": "magenta", "skipped": "yellow"}


def show(results: CorrectnessResults, policy: Policy, *, every: bool = False, messages: bool = True) -> None:
    """What an evaluation came to; without messages where pytest's output, which has them, was shown."""
    _show(results, (), lines(results, policy, every=every, messages=messages))


def show_stored(results: CorrectnessResults, policy: Policy, place: Path, *, every: bool = False) -> None:
    """Where it came from, and a line for each test; `place`: what the result was asked for by."""
    _show(results, origin(results), listed(results, policy, place, every=every))


def _show(results: CorrectnessResults, facts: Iterable[str], lines: Iterable[StyledLine]) -> None:
    console = ResultConsole()
    console.print(Text(printable(f"{results.problem_name} {results.checkpoint_name}"), "bold"))
    if console.is_terminal:
        console.print(group_table(results))
    else:
        for name, passed, total in group_rows(results):
            console.print(f"  {name.lower()}: {passed}/{total}")
    print_lines(console, [(text, "dim") for text in facts])
    print_lines(console, lines)


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


def lines(results: CorrectnessResults, policy: Policy, *, every: bool, messages: bool = True) -> Iterator[StyledLine]:
    """What is said below the counts, each line with its style; `every`: all tests and the phases' times."""
    yield from _reason(results)
    failures = _failures(results)
    for test in results.tests if every else failures[:SHOWN_FAILURES]:
        yield _named(test), STYLES[test.status]
        if messages and test.failure_message != results.infrastructure_failure_reason:
            yield from ((f"    {line}", "") for line in message_lines(test))
    if len(failures) > SHOWN_FAILURES and not every:
        yield f"... and {len(failures) - SHOWN_FAILURES} more that did not pass; -v shows all", "dim"
    yield from _ending(results, policy, every=every)


def listed(results: CorrectnessResults, policy: Policy, place: Path, *, every: bool = False) -> Iterator[StyledLine]:
    """The same with a line for each test: its status, group and name, and what its message says first of all."""
    yield from _reason(results)
    failures = _failures(results)
    for test in results.tests if every else failures[:LISTED_FAILURES]:
        told = test.failure_message if test.failure_message != results.infrastructure_failure_reason else None
        yield _named(test) + (f": {headline(told, LISTED_WIDTH)}" if told else ""), STYLES[test.status]
    if len(failures) > LISTED_FAILURES and not every:
        yield f"... and {len(failures) - LISTED_FAILURES} more that did not pass; -v shows all", "dim"
    if failures:
        yield f"one of them in full: slop-code show {shell_word(text_of(str(place)))} TEST", "dim"
    yield from _ending(results, policy, every=every)


def _failures(results: CorrectnessResults) -> list[TestResult]:
    return [test for test in results.tests if test.status != "passed"]


def _named(test: TestResult) -> str:
    note = " (quarantined)" if test.quarantined else ""
    return f"{test.status.upper()} {test.group_type} {one_line(test.nodeid)}{note}"


def _reason(results: CorrectnessResults) -> Iterator[StyledLine]:
    if results.infrastructure_failure_reason:
        yield f"reason: {printable(results.infrastructure_failure_reason)}", "magenta"


def _ending(results: CorrectnessResults, policy: Policy, *, every: bool) -> Iterator[StyledLine]:
    for warning in results.warnings:
        yield f"warning: {printable(warning)}", "yellow"
    if every:
        yield "  ".join(f"{one_line(name)} {seconds:.2f} s" for name, seconds in results.phases.items()), "dim"
    if apart := [test for test in results.tests if test.quarantined]:
        bad = sum(test.status != "passed" for test in apart)
        yield f"quarantined, deciding nothing: {plural(len(apart), 'test')}, {bad} did not pass", "yellow"
    yield verdict(results, policy)


def message_lines(test: TestResult) -> list[str]:
    """The end of a failure message: that is where pytest says what was expected and what came."""
    said = [truncate(line) for line in printable(test.failure_message or "").splitlines()]
    left_out = len(said) - SHOWN_LINES
    return said if left_out <= 0 else [f"[{left_out} lines left out]", *said[-SHOWN_LINES:]]


def verdict(results: CorrectnessResults, policy: Policy) -> StyledLine:
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
    yield one_line(f"isolation: {box}; tests read from {results.evidence}; {format_duration(results.duration)}")
    if made.pytest_args:
        yield one_line(f"pytest arguments: {shlex.join(made.pytest_args)}")
    for attempt in results.attempts:
        yield f"tried before: {first_line(attempt.reason)}"


def short_digest(digest: str) -> str:
    return digest.removeprefix("sha256:")[:SHOWN_DIGEST]


def show_test(results: CorrectnessResults, test: TestResult, place: Path) -> None:
    """`place`: what the result was asked for by."""
    print_lines(ResultConsole(), test_lines(results, test, place))


def test_lines(results: CorrectnessResults, test: TestResult, place: Path) -> Iterator[StyledLine]:
    """One test in full, each line with its style."""
    yield printable(f"{test.status.upper()} {test.group_type} {test.nodeid}"), f"bold {STYLES[test.status]}"
    facts = [f"{results.problem_name} {results.checkpoint_name}", f"test of {test.checkpoint}"]
    facts += [f"{test.duration_ms:.0f} ms", f"markers: {', '.join(test.markers) or 'none'}"]
    yield one_line("; ".join(facts)), "dim"
    if results.infrastructure_failure_reason:
        yield f"no verdict on the checkpoint: {first_line(results.infrastructure_failure_reason)}", "magenta"
    for title, text in (("message", test.failure_message), ("ran", "\n".join(test.calls)), ("printed", test.output)):
        if text:
            yield f"{title}:", "bold"
            yield from ((f"    {line}", "") for line in printable(shortened(text, SHOWN_TEXT)).rstrip("\n").split("\n"))
    yield f"again: slop-code rerun {shell_word(text_of(str(place)))} {shell_word(test.nodeid)}", "dim"
