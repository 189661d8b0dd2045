"""Lines about the differences between a stored result and a new evaluation of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from slop_code.reporting.failures.failure_lines import STYLES
from slop_code.reporting.provenance_text import short_digest
from slop_code.reporting.terminal import ResultConsole, print_lines
from slop_code.reporting.text import JSON_HAS_ALL, first_line, format_duration, more_line, one_line, plural, printable
from slop_code.verification.rerun_changes import rerun_changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.reporting.terminal import StyledLine
    from slop_code.verification.rerun_changes import RerunChanges, StatusChange, TimeChange, ValueChange

SHOWN_CHANGES = 20
MIN_SHOWN_S = 0.0005


def show_changes(
    changes: RerunChanges, old: CorrectnessResults, new: CorrectnessResults, test: TestResult | None
) -> None:
    """`test` is the stored result of a test, if only that test ran again."""
    console = ResultConsole()
    name = one_line(f"{new.problem_name} {new.checkpoint_name}" if test is None else test.nodeid)
    if changes.reasons[1] is not None:
        reason = printable(changes.reasons[1])
        print_lines(console, [(f"{name}: there is no verdict now: {reason}", "magenta"), verdict(changes)])
        return
    print_lines(console, [(f"{name}: {summary_text(old, new, test)}", "bold"), *cause_lines(changes)])
    changed = [*changes.statuses, *changes.added, *changes.removed]
    if console.is_terminal and changed:
        console.print(change_table(changed))
    else:
        print_lines(console, test_lines(changes))
    print_lines(
        console, [*_tests("tests with another message:", changes.messages), *_times(changes.times), verdict(changes)]
    )


def print_changes(old: CorrectnessResults, new: CorrectnessResults) -> None:
    """Tests whose status differs from the evaluation before."""
    changes = rerun_changes(old, new)
    lines = list(test_lines(changes))
    if changes.reasons[1] is None:
        print_lines(ResultConsole(), lines or [("every test has the status it had before", "dim")])


def summary_text(old: CorrectnessResults, new: CorrectnessResults, test: TestResult | None) -> str:
    if test is not None:
        return f"{test.status} before, {new.tests[0].status if new.tests else 'not run'} now"
    counts = [f"{sum(side.pass_counts.values())} of {sum(side.total_counts.values())}" for side in (old, new)]
    return f"{counts[0]} tests passed before, {counts[1]} now"


def cause_lines(changes: RerunChanges) -> Iterator[StyledLine]:
    """Inputs that may be the cause, and the verdicts that changed."""
    if changes.reasons[0] is not None:
        yield f"there was no verdict before: {first_line(changes.reasons[0])}", "magenta"
    yield from _values("inputs that differ:", changes.digests)
    yield from _values("versions that differ:", changes.versions)
    if changes.verdicts:
        yield "verdicts that changed:", "bold"
        for change in changes.verdicts:
            yield f"  {one_line(change.what)}: {change.old} before, {change.new} now", ""


def test_lines(changes: RerunChanges) -> Iterator[StyledLine]:
    yield from _tests("tests whose status changed:", changes.statuses)
    yield from _tests("tests that were added:", changes.added)
    yield from _tests("tests that were removed:", changes.removed)


def change_table(changed: list[StatusChange]) -> Table:
    table = Table("test", "before", "now")
    for change in changed[:SHOWN_CHANGES]:
        now = Text(change.new or "not there", STYLES[change.new] if change.new else "")
        table.add_row(Text(one_line(change.test)), change.old or "not there", now)
    for text, _ in more_line(changed, SHOWN_CHANGES, JSON_HAS_ALL):
        table.add_row(text, "", "")
    return table


def verdict(changes: RerunChanges) -> StyledLine:
    if changes.reasons[1] is not None:
        return "INFRASTRUCTURE FAILURE: nothing to compare with", "bold magenta"
    if not changes.differ:
        note = "" if changes.same_inputs else ", though inputs differ"
        return f"THE SAME: statuses and verdicts{note}", "bold green"
    if changes.flaky:
        count = plural(len(changes.statuses), "test")
        return f"DIFFERS with the same inputs: {count} flaky, or dependent on time or machine", "bold red"
    return "DIFFERS", "bold red"


def _tests(title: str, changed: list[StatusChange]) -> Iterator[StyledLine]:
    if changed:
        yield title, "bold"
    for change in changed[:SHOWN_CHANGES]:
        if change.old == change.new:
            text = f"{change.old} as before, with another message"
        else:
            text = f"{change.old or 'not there'} before, {change.new or 'not there'} now"
        yield f"  {one_line(change.test)}: {text}", STYLES[change.new] if change.new else ""
    yield from more_line(changed, SHOWN_CHANGES, JSON_HAS_ALL, indent="  ")


def _values(title: str, changed: list[ValueChange]) -> Iterator[StyledLine]:
    if changed:
        yield title, "bold"
    for change in changed[:SHOWN_CHANGES]:
        old, new = (
            one_line(short_digest(value) if change.meaning else value) if value else "none"
            for value in (change.old, change.new)
        )
        meaning = f": {change.meaning}" if change.meaning else ""
        yield f"  {one_line(change.what)} {old} before, {new} now{meaning}", ""
    yield from more_line(changed, SHOWN_CHANGES, JSON_HAS_ALL, indent="  ")


def _times(times: Iterable[TimeChange]) -> Iterator[StyledLine]:
    yield "times, before and now:", "bold"
    for change in times:
        if abs(change.new - change.old) >= MIN_SHOWN_S:
            yield f"  {one_line(change.what)}: {_seconds(change.old)}, {_seconds(change.new)}", "dim"


def _seconds(value: float) -> str:
    return f"{1000 * value:.0f} ms" if value < 1 else format_duration(value)
