"""Lines about the differences between a stored result and a new evaluation of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from slop_code.reporting.result_lines import STYLES, short_digest
from slop_code.reporting.terminal import ResultConsole, print_lines
from slop_code.reporting.text import first_line, format_duration, one_line, plural, printable
from slop_code.verification.rerun_changes import rerun_changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.reporting.terminal import StyledLine
    from slop_code.verification.rerun_changes import RerunChanges, StatusChange, TimeChange, ValueChange

SHOWN = 20
NOTICED_S = 0.0005


def show(found: RerunChanges, old: CorrectnessResults, new: CorrectnessResults, test: TestResult | None) -> None:
    """`test`: as it was, where it is the only one that ran anew."""
    console = ResultConsole()
    name = one_line(f"{new.problem_name} {new.checkpoint_name}" if test is None else test.nodeid)
    if found.reasons[1] is not None:
        reason = printable(found.reasons[1])
        print_lines(console, [(f"{name}: there is no verdict now: {reason}", "magenta"), verdict(found)])
        return
    print_lines(console, [(f"{name}: {headline(old, new, test)}", "bold"), *causes(found)])
    changed = [*found.statuses, *found.came, *found.went]
    if console.is_terminal and changed:
        console.print(table_of(changed))
    else:
        print_lines(console, changed_tests(found))
    print_lines(
        console, [*_tests("tests that say something else:", found.messages), *_times(found.times), verdict(found)]
    )


def print_changes(old: CorrectnessResults, new: CorrectnessResults) -> None:
    """Which tests have another status than before."""
    found = rerun_changes(old, new)
    lines = list(changed_tests(found))
    if found.reasons[1] is None:
        print_lines(ResultConsole(), lines or [("every test has the status it had before", "dim")])


def headline(old: CorrectnessResults, new: CorrectnessResults, test: TestResult | None) -> str:
    if test is not None:
        return f"{test.status} before, {new.tests[0].status if new.tests else 'not run'} now"
    counts = [f"{sum(one.pass_counts.values())} of {sum(one.total_counts.values())}" for one in (old, new)]
    return f"{counts[0]} tests passed before, {counts[1]} now"


def causes(found: RerunChanges) -> Iterator[StyledLine]:
    """What may be why, and the verdicts that came of it."""
    if found.reasons[0] is not None:
        yield f"there was no verdict before: {first_line(found.reasons[0])}", "magenta"
    yield from _values("what went in differs:", found.digests)
    yield from _values("versions that differ:", found.versions)
    if found.verdicts:
        yield "verdicts that changed:", "bold"
        yield from ((f"  {one_line(one.what)}: {one.old} before, {one.new} now", "") for one in found.verdicts)


def changed_tests(found: RerunChanges) -> Iterator[StyledLine]:
    yield from _tests("tests whose status changed:", found.statuses)
    yield from _tests("tests that came:", found.came)
    yield from _tests("tests that went:", found.went)


def table_of(changed: list[StatusChange]) -> Table:
    table = Table("test", "before", "now")
    for one in changed[:SHOWN]:
        now = Text(one.new or "not there", STYLES[one.new] if one.new else "")
        table.add_row(Text(one_line(one.test)), one.old or "not there", now)
    if len(changed) > SHOWN:
        table.add_row(f"... and {len(changed) - SHOWN} more; --json has them all", "", "")
    return table


def verdict(found: RerunChanges) -> StyledLine:
    if found.reasons[1] is not None:
        return "INFRASTRUCTURE FAILURE: nothing to compare with", "bold magenta"
    if not found.differ:
        return "THE SAME: statuses and verdicts" + ("" if found.same_inputs else ", though inputs differ"), "bold green"
    if found.flaky:
        count = plural(len(found.statuses), "test")
        return f"DIFFERS, and nothing that went in does: {count} flaky, or bound to this time and machine", "bold red"
    return "DIFFERS", "bold red"


def _tests(title: str, changed: list[StatusChange]) -> Iterator[StyledLine]:
    if changed:
        yield title, "bold"
    for one in changed[:SHOWN]:
        if one.old == one.new:
            told = f"{one.old} as before, with another message"
        else:
            told = f"{one.old or 'not there'} before, {one.new or 'not there'} now"
        yield f"  {one_line(one.test)}: {told}", STYLES[one.new] if one.new else ""
    yield from _more(changed)


def _values(title: str, changed: list[ValueChange]) -> Iterator[StyledLine]:
    if changed:
        yield title, "bold"
    for one in changed[:SHOWN]:
        values = [
            one_line(short_digest(value) if one.meaning else value) if value else "none" for value in (one.old, one.new)
        ]
        meaning = f": {one.meaning}" if one.meaning else ""
        yield f"  {one_line(one.what)} {values[0]} before, {values[1]} now{meaning}", ""
    yield from _more(changed)


def _more(changed: list[ValueChange] | list[StatusChange]) -> Iterator[StyledLine]:
    if len(changed) > SHOWN:
        yield f"  ... and {len(changed) - SHOWN} more; --json has them all", "dim"


def _times(times: Iterable[TimeChange]) -> Iterator[StyledLine]:
    yield "times, before and now:", "bold"
    for one in times:
        if abs(one.new - one.old) >= NOTICED_S:
            yield f"  {one_line(one.what)}: {_seconds(one.old)}, {_seconds(one.new)}", "dim"


def _seconds(value: float) -> str:
    return f"{1000 * value:.0f} ms" if value < 1 else format_duration(value)
