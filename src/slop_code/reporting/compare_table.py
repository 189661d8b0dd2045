"""Comparison of runs on standard output: a table and colours on a terminal, a line for each row elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from rich.text import Text

from slop_code._suggestions import first_names
from slop_code.comparison.records import CHANGES
from slop_code.reporting.table_layout import TableColumn, TableRow, layout_table
from slop_code.reporting.terminal import print_lines
from slop_code.reporting.text import first_line, format_percent, more_line, one_line, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from slop_code.comparison.records import (
        Change,
        CheckpointChange,
        Comparison,
        Difference,
        PairComparison,
        TestChange,
        Verdicts,
    )
    from slop_code.evaluation.reports.raw_test import Status
    from slop_code.reporting.terminal import StyledLine


SHOWN_CHECKPOINTS = 30
SHOWN_TESTS = 10
SHOWN_REASONS = 10
SHOWN_UNKNOWN = 3
LISTED: tuple[Change, ...] = ("lost", "gained", "flaky", "rejudged")
"""Changes whose tests are listed without -v; the others are only counted."""
STYLES: dict[Change, str] = {"lost": "red", "gained": "green", "flaky": "yellow", "rejudged": "magenta"}
DROP_ORDER: tuple[Change, ...] = ("removed", "added", "rejudged", "flaky")
"""Columns that a narrow table drops, in this order; the last line has the counts."""
MAX_HEAD_WIDTH = 20
"""Characters of a side's name in the head of its column; a longer name loses its start."""
MIN_SHOWN_P = 0.0001
NO_VERDICT = "NO VERDICT"


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    problem: str
    """Empty in the row of a whole problem."""
    name: str
    base: str
    other: str
    style: str
    counts: Mapping[Change, int]
    p: str


def show_comparison(comparison: Comparison, console: Console, *, verbose: bool = False) -> None:
    """With `verbose`, all tests that differ are listed, added and removed ones included."""
    warnings = comparison.warnings[:SHOWN_REASONS]
    print_lines(console, [(f"warning: {first_line(warning)}", "yellow") for warning in warnings])
    for number, pair in enumerate(comparison.pairs):
        if number:
            console.print()
        runs = [plural(len(side.runs), "run") for side in (comparison.sides[0], comparison.sides[number + 1])]
        heading = f"{one_line(pair.base)} ({runs[0]}) -> {one_line(pair.other)} ({runs[1]})"
        print_lines(console, [(heading, "bold")])
        row_kind, rows = rows_of(pair)
        drawn = table(row_kind, rows, pair, console.width) if console.is_terminal and rows else None
        for line in drawn or [Text(f"{row_kind} {row_line(row)}") for row in rows]:
            console.print(line, soft_wrap=True)
        if drawn:
            console.print()
        print_lines(console, closing_lines(comparison, pair, verbose=verbose))


def rows_of(pair: PairComparison) -> tuple[str, list[ComparisonRow]]:
    """A row for each checkpoint, or for each problem where there are too many checkpoints."""
    if len(pair.checkpoints) <= SHOWN_CHECKPOINTS:
        return "checkpoint", [_checkpoint_row(change) for change in pair.checkpoints]
    problems = groupby(pair.checkpoints, key=lambda change: change.problem)
    return "problem", [_problem_row(name, list(changes)) for name, changes in problems]


def _checkpoint_row(change: CheckpointChange) -> ComparisonRow:
    verdicts = _verdict(change.base), _verdict(change.other)
    style = "magenta" if NO_VERDICT in verdicts else STYLES.get(change.change, "") if change.change else ""
    p = "" if change.p_adjusted is None else format_p_value(change.p_adjusted)
    return ComparisonRow(one_line(change.problem), one_line(change.checkpoint), *verdicts, style, change.tests, p)


def _verdict(verdicts: Verdicts) -> str:
    if verdicts.runs > 1:
        return f"{verdicts.passed}/{verdicts.runs}"
    return NO_VERDICT if not verdicts.runs else "PASSED" if verdicts.passed else "NOT PASSED"


def _problem_row(name: str, changes: Sequence[CheckpointChange]) -> ComparisonRow:
    """Shares are over the checkpoints with a verdict on both sides."""
    compared = [change for change in changes if change.compared]
    base, other = _pass_rates(compared)
    style = "magenta" if not compared else "red" if other < base else "green" if other > base else ""
    counts = {change: sum(checkpoint.tests[change] for checkpoint in changes) for change in CHANGES}
    cells = [format_percent(share) if compared else NO_VERDICT for share in (base, other)]
    return ComparisonRow("", one_line(name), cells[0], cells[1], style, counts, "")


def _pass_rates(changes: Sequence[CheckpointChange]) -> tuple[float, float]:
    """Shares of runs that passed, on the base side and on the other."""
    return _pass_rate([change.base for change in changes]), _pass_rate([change.other for change in changes])


def _pass_rate(verdicts: Sequence[Verdicts]) -> float:
    return sum(side.passed for side in verdicts) / (sum(side.runs for side in verdicts) or 1)


def table(row_kind: str, rows: Sequence[ComparisonRow], pair: PairComparison, width: int) -> list[Text] | None:
    """Columns that are empty in every row are left out. None where the terminal is too narrow."""
    shown = [change for change in CHANGES if change in ("lost", "gained") or any(row.counts[change] for row in rows)]
    has_p_values = any(row.p for row in rows)
    heads = [
        *(TableColumn(_head(side), right=False) for side in (pair.base, pair.other)),
        *(TableColumn(change, drop=DROP_ORDER.index(change) if change in DROP_ORDER else None) for change in shown),
        *([TableColumn("p (Holm)")] * has_p_values),
    ]
    drawn = []
    for row in rows:
        counts = [Text(str(row.counts[change] or "-"), _count_style(row, change)) for change in shown]
        cells = [Text(row.base), Text(row.other, row.style), *counts, *([Text(row.p or "-")] * has_p_values)]
        drawn.append(TableRow(row.problem, row.name, cells))
    return layout_table(row_kind, heads, drawn, width)


def _count_style(row: ComparisonRow, change: Change) -> str:
    return STYLES.get(change, "") if row.counts[change] else ""


def _head(side: str) -> str:
    name = one_line(side)
    return name if len(name) <= MAX_HEAD_WIDTH else f"…{name[1 - MAX_HEAD_WIDTH :]}"


def row_line(row: ComparisonRow) -> str:
    facts = [f"{row.base} -> {row.other}"]
    facts += [f"{change} {row.counts[change]}" for change in CHANGES if row.counts[change]]
    name = f"{row.problem}/{row.name}" if row.problem else row.name
    return f"{name}: {', '.join([*facts, *([f'p {row.p} (Holm)'] if row.p else [])])}"


def closing_lines(comparison: Comparison, pair: PairComparison, *, verbose: bool) -> Iterator[StyledLine]:
    """The lines below the table; the verdict is the last."""
    for change in CHANGES if verbose else LISTED:
        yield from _test_lines(change, [test for test in pair.tests if test.change == change], verbose=verbose)
    if pair.other_judge:
        yield f"rejudged: the same submissions, but these differ: {'; '.join(pair.other_judge)}", "magenta"
    for side, names in ((pair.base, pair.only_base), (pair.other, pair.only_other)):
        if names:
            shown = first_names([one_line(name) for name in names], SHOWN_REASONS)
            yield f"not compared, only in {one_line(side)}: {shown}", "yellow"
    unknown = pair.no_verdicts if verbose else pair.no_verdicts[:SHOWN_REASONS]
    for entry in unknown:
        run = entry.side if entry.run == entry.side else f"{entry.side}/{entry.run}"
        name = one_line(f"{run}/{entry.problem}/{entry.checkpoint}")
        yield f"no verdict {name}: {first_line(entry.reason)}", "magenta"
    yield from more_line(pair.no_verdicts, len(unknown), " without a verdict; -v shows all")
    yield from significance(comparison, pair)
    yield verdict(comparison, pair)


def _test_lines(change: Change, tests: Sequence[TestChange], *, verbose: bool) -> Iterator[StyledLine]:
    """The largest difference comes first."""
    ordered = sorted(tests, key=lambda test: -abs(_passed(test.other) - _passed(test.base)))
    shown = ordered if verbose else ordered[:SHOWN_TESTS]
    for test in shown:
        name = one_line(f"{test.problem}/{test.checkpoint} {test.nodeid}")
        yield f"{change} {name}: {_status_text(test.base)} -> {_status_text(test.other)}", STYLES.get(change, "dim")
    yield from more_line(tests, len(shown), f" {change}; -v shows all")


def _passed(statuses: Mapping[Status, int]) -> float:
    return statuses.get("passed", 0) / (sum(statuses.values()) or 1)


def _status_text(statuses: Mapping[Status, int]) -> str:
    """The status in one run; of several runs, how many passed."""
    total = sum(statuses.values())
    if total > 1:
        return f"{statuses.get('passed', 0)}/{total} passed"
    return next(iter(statuses), "not there")


def format_p_value(p: float) -> str:
    return f"{p:.2g}" if p >= MIN_SHOWN_P else f"< {MIN_SHOWN_P:.4f}"


def significance(comparison: Comparison, pair: PairComparison) -> Iterator[StyledLine]:
    result = pair.significance
    if result is None:
        yield f"no p-value: {one_line(pair.no_significance or '')}", "dim"
        return
    samples = {side.name: len(side.runs) - len(side.copies) for side in comparison.sides}
    runs = [samples[pair.base], samples[pair.other]]
    yield f"checkpoints: {_difference_text(pair, result.checkpoints, 'checkpoint')}", ""
    if result.problems:
        yield f"problems solved: {_difference_text(pair, result.problems, 'problem')}", ""
    lowest = f"no p below {result.smallest_p:.2g} is possible"
    yield f"with {runs[0]} and {runs[1]} runs {lowest}; checkpoints have Fisher's p, corrected by Holm", "dim"


def _difference_text(pair: PairComparison, difference: Difference, what: str) -> str:
    base = f"{one_line(pair.base)} {format_percent(difference.base)}"
    other = f"{one_line(pair.other)} {format_percent(difference.other)}"
    count, p = difference.arrangements, difference.p
    how = f"all {count} arrangements"
    if difference.seed is not None:
        how = f"{count} arrangements at random, seed {difference.seed}"
    equals = "= " if p >= MIN_SHOWN_P else ""
    tasks = plural(difference.tasks, what)
    return f"{base}, {other} of {tasks}, p {equals}{format_p_value(p)} (permutation test over {how})"


def verdict(comparison: Comparison, pair: PairComparison) -> StyledLine:
    compared = [change for change in pair.checkpoints if change.compared]
    if not compared:
        return "NOTHING COMPARED: no checkpoint has a verdict on both sides", "bold magenta"
    text = f"{_passes_text(pair, compared)} ({comparison.policy}): {_counts_text(pair)}"
    for side, missing in ((pair.base, pair.unknown_base), (pair.other, pair.unknown_other)):
        if missing:
            names = [one_line(f"{entry.problem}/{entry.checkpoint}") for entry in missing]
            text += f"; no verdict in {one_line(side)}: {first_names(names, SHOWN_UNKNOWN)}"
    good = "bold magenta" if pair.unanswered else "bold green" if pair.changed_tests["gained"] else "bold"
    return text, "bold red" if pair.lost else good


def _counts_text(pair: PairComparison) -> str:
    counts = pair.changed_tests
    if not any(counts.values()):
        return "no test differs"
    texts = [f"gained {plural(counts['gained'], 'test')}", f"lost {counts['lost']}"]
    texts += [f"{change} {counts[change]}" for change in CHANGES[2:] if counts[change]]
    repeated = len({(test.problem, test.nodeid) for test in pair.tests}) < len(pair.tests)
    return ", ".join(texts) + " (each once per checkpoint)" * repeated


def _passes_text(pair: PairComparison, compared: Sequence[CheckpointChange]) -> str:
    base, other = one_line(pair.base), one_line(pair.other)
    if any(max(change.base.runs, change.other.runs) > 1 for change in compared):
        before, after = map(format_percent, _pass_rates(compared))
        return f"{other} passes {after} of checkpoints, {base} {before}"
    more = sum(change.other.passed - change.base.passed for change in compared)
    if not more:
        return f"{other} passes as many checkpoints as {base}"
    return f"{other} passes {plural(abs(more), 'checkpoint')} {'more' if more > 0 else 'fewer'} than {base}"
