"""How sides differ: a table and colours on a terminal, a line for each row elsewhere.

Names and reasons come from others: they are never markup and never control sequences.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, get_args

from rich.text import Text

from slop_code.comparison.records import Change
from slop_code.reporting.run_table import percent
from slop_code.reporting.table_layout import TableColumn, TableRow, layout_table
from slop_code.reporting.terminal import print_lines
from slop_code.reporting.text import first_line, one_line, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from slop_code.comparison.records import CheckpointChange, Comparison, Difference, Pair, TestChange, Verdicts
    from slop_code.evaluation.reports.raw_test import Status
    from slop_code.reporting.terminal import StyledLine


SHOWN_CHECKPOINTS = 30
SHOWN_TESTS = 10
SHOWN_REASONS = 10
SHOWN_UNKNOWN = 3
ORDER: tuple[Change, ...] = get_args(Change)
ALWAYS: tuple[Change, ...] = ("lost", "gained", "flaky", "rejudged")
"""Listed without being asked for; tests that came or went are only counted."""
STYLES: dict[Change, str] = {"lost": "red", "gained": "green", "flaky": "yellow", "rejudged": "magenta"}
SPARED: tuple[Change, ...] = ("went", "came", "rejudged", "flaky")
"""What a narrow table does without, in this order: the last line has the counts."""
HEAD_WIDTH = 20
"""Characters of a side's name above its column: the last of them."""
SMALLEST_SHOWN = 0.0001
NO_VERDICT = "NO VERDICT"


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    problem: str
    """Empty where the row is the problem itself."""
    name: str
    base: str
    other: str
    style: str
    counts: Mapping[Change, int]
    p: str


def show_comparison(comparison: Comparison, console: Console, *, every: bool = False) -> None:
    """`every`: all tests that differ, those that came and went too."""
    warnings = comparison.warnings[:SHOWN_REASONS]
    print_lines(console, [(f"warning: {first_line(warning)}", "yellow") for warning in warnings])
    for number, pair in enumerate(comparison.pairs):
        if number:
            console.print()
        runs = [plural(len(side.runs), "run") for side in (comparison.sides[0], comparison.sides[number + 1])]
        heading = f"{one_line(pair.base)} ({runs[0]}) -> {one_line(pair.other)} ({runs[1]})"
        print_lines(console, [(heading, "bold")])
        kind, rows = rows_of(pair)
        drawn = table(kind, rows, pair, console.width) if console.is_terminal and rows else None
        for line in drawn or [Text(f"{kind} {row_line(row)}") for row in rows]:
            console.print(line, soft_wrap=True)
        if drawn:
            console.print()
        print_lines(console, closing(comparison, pair, every=every))


def rows_of(pair: Pair) -> tuple[str, list[ComparisonRow]]:
    """Few checkpoints have a row each; of many, a problem has one."""
    if len(pair.checkpoints) <= SHOWN_CHECKPOINTS:
        return "checkpoint", [_checkpoint_row(one) for one in pair.checkpoints]
    grouped = groupby(pair.checkpoints, key=lambda one: one.problem)
    return "problem", [_problem_row(name, list(found)) for name, found in grouped]


def _checkpoint_row(one: CheckpointChange) -> ComparisonRow:
    unsure = NO_VERDICT in (_verdict(one.base), _verdict(one.other))
    style = "magenta" if unsure else STYLES.get(one.change, "") if one.change else ""
    p = "" if one.p_adjusted is None else format_p_value(one.p_adjusted)
    names = one_line(one.problem), one_line(one.checkpoint)
    return ComparisonRow(*names, _verdict(one.base), _verdict(one.other), style, one.tests, p)


def _verdict(found: Verdicts) -> str:
    if found.runs > 1:
        return f"{found.passed}/{found.runs}"
    return NO_VERDICT if not found.runs else "PASSED" if found.passed else "NOT PASSED"


def _problem_row(name: str, checkpoints: Sequence[CheckpointChange]) -> ComparisonRow:
    """Of the checkpoints with a verdict on both sides."""
    compared = [one for one in checkpoints if one.compared]
    shares = [_share([one.base for one in compared]), _share([one.other for one in compared])]
    style = "magenta" if not compared else "red" if shares[1] < shares[0] else "green" if shares[1] > shares[0] else ""
    counts = {kind: sum(one.tests[kind] for one in checkpoints) for kind in ORDER}
    cells = [percent(share) if compared else NO_VERDICT for share in shares]
    return ComparisonRow("", one_line(name), cells[0], cells[1], style, counts, "")


def _share(found: Sequence[Verdicts]) -> float:
    return sum(one.passed for one in found) / (sum(one.runs for one in found) or 1)


def table(kind: str, rows: Sequence[ComparisonRow], pair: Pair, width: int) -> list[Text] | None:
    """Without the columns that would say nothing in any row; None where there is no room for it."""
    kinds = [one for one in ORDER if one in ("lost", "gained") or any(row.counts[one] for row in rows)]
    tested = any(row.p for row in rows)
    heads = [
        *(TableColumn(_head(side), right=False) for side in (pair.base, pair.other)),
        *(TableColumn(one, spare=SPARED.index(one) if one in SPARED else None) for one in kinds),
        *([TableColumn("p (Holm)")] * tested),
    ]
    drawn = []
    for row in rows:
        counts = [Text(str(row.counts[one]), STYLES.get(one, "")) if row.counts[one] else Text("-") for one in kinds]
        cells = [Text(row.base), Text(row.other, row.style), *counts, *([Text(row.p or "-")] * tested)]
        drawn.append(TableRow(row.problem, row.name, cells))
    return layout_table(kind, heads, drawn, width)


def _head(side: str) -> str:
    name = one_line(side)
    return name if len(name) <= HEAD_WIDTH else f"…{name[1 - HEAD_WIDTH :]}"


def row_line(row: ComparisonRow) -> str:
    facts = [f"{row.base} -> {row.other}", *(f"{kind} {row.counts[kind]}" for kind in ORDER if row.counts[kind])]
    name = f"{row.problem}/{row.name}" if row.problem else row.name
    return f"{name}: {', '.join([*facts, *([f'p {row.p} (Holm)'] if row.p else [])])}"


def closing(comparison: Comparison, pair: Pair, *, every: bool) -> Iterator[StyledLine]:
    """What is said below the table; the verdict last."""
    for kind in ORDER if every else ALWAYS:
        yield from _tests(kind, [test for test in pair.tests if test.change == kind], every=every)
    if pair.other_judge:
        yield f"rejudged: the same submissions, but these differ: {'; '.join(pair.other_judge)}", "magenta"
    for side, names in ((pair.base, pair.only_base), (pair.other, pair.only_other)):
        if names:
            shown = ", ".join(map(one_line, names[:SHOWN_REASONS]))
            more = f" and {len(names) - SHOWN_REASONS} more" if len(names) > SHOWN_REASONS else ""
            yield f"not compared, only in {one_line(side)}: {shown}{more}", "yellow"
    unknown = pair.no_verdicts if every else pair.no_verdicts[:SHOWN_REASONS]
    for one in unknown:
        place = one.side if one.run == one.side else f"{one.side}/{one.run}"
        yield f"no verdict {one_line(f'{place}/{one.problem}/{one.checkpoint}')}: {first_line(one.reason)}", "magenta"
    if len(pair.no_verdicts) > len(unknown):
        yield f"... and {len(pair.no_verdicts) - len(unknown)} more without a verdict; -v shows all", "dim"
    yield from significance(comparison, pair)
    yield verdict(comparison, pair)


def _tests(kind: Change, tests: Sequence[TestChange], *, every: bool) -> Iterator[StyledLine]:
    """Those that differ most come first."""
    ordered = sorted(tests, key=lambda test: -abs(_passed(test.other) - _passed(test.base)))
    shown = ordered if every else ordered[:SHOWN_TESTS]
    for test in shown:
        place = one_line(f"{test.problem}/{test.checkpoint} {test.nodeid}")
        yield f"{kind} {place}: {in_runs(test.base)} -> {in_runs(test.other)}", STYLES.get(kind, "dim")
    if len(tests) > len(shown):
        yield f"... and {len(tests) - len(shown)} more {kind}; -v shows all", "dim"


def _passed(found: Mapping[Status, int]) -> float:
    return found.get("passed", 0) / (sum(found.values()) or 1)


def in_runs(found: Mapping[Status, int]) -> str:
    """A run's status; of several, how many passed."""
    total = sum(found.values())
    if total > 1:
        return f"{found.get('passed', 0)}/{total} passed"
    return next(iter(found), "not there")


def format_p_value(p: float) -> str:
    return f"{p:.2g}" if p >= SMALLEST_SHOWN else f"< {SMALLEST_SHOWN:.4f}"


def significance(comparison: Comparison, pair: Pair) -> Iterator[StyledLine]:
    found = pair.significance
    if found is None:
        yield f"no p-value: {one_line(pair.no_significance or '')}", "dim"
        return
    runs = [next(len(side.runs) for side in comparison.sides if side.name == name) for name in (pair.base, pair.other)]
    yield f"checkpoints: {_difference(pair, found.checkpoints, 'checkpoint')}", ""
    if found.problems:
        yield f"problems solved: {_difference(pair, found.problems, 'problem')}", ""
    lowest = f"no p below {found.smallest_p:.2g} is possible"
    yield f"with {runs[0]} and {runs[1]} runs {lowest}; checkpoints have Fisher's p, corrected by Holm", "dim"


def _difference(pair: Pair, found: Difference, what: str) -> str:
    sides = f"{one_line(pair.base)} {percent(found.base)}, {one_line(pair.other)} {percent(found.other)}"
    every = f"all {found.arrangements} arrangements"
    how = every if found.seed is None else f"{found.arrangements} arrangements at random, seed {found.seed}"
    return f"{sides} of {plural(found.tasks, what)}, {_p(found.p)} (permutation test over {how})"


def _p(p: float) -> str:
    return f"p = {format_p_value(p)}" if p >= SMALLEST_SHOWN else f"p {format_p_value(p)}"


def verdict(comparison: Comparison, pair: Pair) -> StyledLine:
    compared = [one for one in pair.checkpoints if one.compared]
    if not compared:
        return "NOTHING COMPARED: no checkpoint has a verdict on both sides", "bold magenta"
    said = f"{_more_or_less(pair, compared)} ({comparison.policy}): {_counted(pair)}"
    for side, missing in ((pair.base, pair.unknown_base), (pair.other, pair.unknown_other)):
        if missing:
            shown = ", ".join(one_line(f"{one.problem}/{one.checkpoint}") for one in missing[:SHOWN_UNKNOWN])
            more = f" and {len(missing) - SHOWN_UNKNOWN} more" if len(missing) > SHOWN_UNKNOWN else ""
            said += f"; no verdict in {one_line(side)}: {shown}{more}"
    good = "bold magenta" if pair.unanswered else "bold green" if pair.changed_tests["gained"] else "bold"
    return said, "bold red" if pair.lost else good


def _counted(pair: Pair) -> str:
    counts = pair.changed_tests
    if not any(counts.values()):
        return "no test differs"
    told = [f"gained {plural(counts['gained'], 'test')}", f"lost {counts['lost']}"]
    told += [f"{kind} {counts[kind]}" for kind in ORDER[2:] if counts[kind]]
    again = len({(test.problem, test.nodeid) for test in pair.tests}) < len(pair.tests)
    return ", ".join(told) + " (each once per checkpoint)" * again


def _more_or_less(pair: Pair, compared: Sequence[CheckpointChange]) -> str:
    base, other = one_line(pair.base), one_line(pair.other)
    if any(max(one.base.runs, one.other.runs) > 1 for one in compared):
        shares = [_share([one.base for one in compared]), _share([one.other for one in compared])]
        return f"{other} passes {percent(shares[1])} of checkpoints, {base} {percent(shares[0])}"
    more = sum(one.other.passed - one.base.passed for one in compared)
    if not more:
        return f"{other} passes as many checkpoints as {base}"
    return f"{other} passes {plural(abs(more), 'checkpoint')} {'more' if more > 0 else 'fewer'} than {base}"
