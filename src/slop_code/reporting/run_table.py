"""What runs came to: tables and colours on a terminal, a line for each row elsewhere.

Names and reasons come from others: they are never markup and never control sequences.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.text import Text

from slop_code.evaluation.groups import GroupType
from slop_code.reporting.table_layout import TableColumn, TableRow, layout_table
from slop_code.reporting.terminal import print_lines
from slop_code.reporting.text import first_line, format_duration, one_line, plural
from slop_code.runs.summary import totals_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from slop_code.evaluation.policy import Policy
    from slop_code.reporting.terminal import StyledLine
    from slop_code.runs.checkpoint_lines import CheckpointLine
    from slop_code.runs.samples import Estimate
    from slop_code.runs.summary import GroupRate, RunSummary, Totals

    Rows = Sequence[tuple[str, str, Totals]]
    """What a row stands in, where that is to be said; its name; what it came to."""

SHOWN_CHECKPOINTS = 30
SHOWN_RUNS = 30
SHOWN_REASONS = 10
SUMMARY = "summary.json"
LINES = "checkpoint_results.jsonl"
UNSURE = "bold magenta"
HEADS = {
    GroupType.CORE: "core",
    GroupType.FUNCTIONALITY: "funct.",
    GroupType.ERROR: "error",
    GroupType.REGRESSION: "regr.",
}


def show_run(summary: RunSummary, lines: Sequence[CheckpointLine], policy: Policy, console: Console) -> None:
    for kind, rows in sections(summary, lines, policy):
        drawn = table(kind, rows, policy, console.width) if console.is_terminal else None
        for line in drawn or plain(kind, rows, policy):
            console.print(line, soft_wrap=True)
        if drawn:
            console.print()
    print_lines(console, closing(summary, lines, policy))


def sections(summary: RunSummary, lines: Sequence[CheckpointLine], policy: Policy) -> Iterator[tuple[str, Rows]]:
    """Few checkpoints have a row each; of many, a problem has one. Several runs have one each besides."""
    several = len(summary.runs) > 1
    if 0 < len(lines) <= SHOWN_CHECKPOINTS:
        ordered = sorted(lines, key=lambda line: (line.problem, line.run, line.order))
        yield "checkpoint", [(_group(line, several), line.checkpoint, totals_of([line], [policy])) for line in ordered]
    elif lines:
        yield "problem", [("", name, problem.totals) for name, problem in summary.problems.items()]
    if several:
        yield "run", [("", name, totals) for name, totals in list(summary.runs.items())[:SHOWN_RUNS]]


def _group(line: CheckpointLine, several: bool) -> str:
    return f"{line.run}/{line.problem}" if several else line.problem


def plain(kind: str, rows: Rows, policy: Policy) -> Iterator[Text]:
    for group, name, totals in rows:
        label = f"{group}/{name}" if group else name
        yield Text(f"{kind} {one_line(label)}: {row_line(totals, policy)}")


def table(kind: str, rows: Rows, policy: Policy, width: int) -> list[Text] | None:
    """Without the columns that would say nothing in any row; None where there is no room for it."""
    groups = [group for group in GroupType if any(totals.pass_rates[group].total for *_, totals in rows)]
    missing = kind != "checkpoint" and any(without_verdict(totals) for *_, totals in rows)
    columns = [
        TableColumn("passed", right=False),
        *(TableColumn(HEADS[group]) for group in groups),
        TableColumn("broke", spare=3),
        TableColumn("repaired", spare=2),
        *([TableColumn("no verdict")] * missing),
        TableColumn("time", spare=1),
    ]
    drawn = []
    for group, name, totals in rows:
        cells = [
            Text(passed_cell(totals, policy), _style(totals, policy)),
            *(Text(rate(totals, one), _shade(totals.pass_rates[one])) for one in groups),
            *map(Text, changes(totals)),
            *([Text(_few(without_verdict(totals)))] * missing),
            Text(clock(totals.durations.total) if totals.checkpoints.evaluated else "-"),
        ]
        drawn.append(TableRow(one_line(group), one_line(name), cells))
    return layout_table(kind, columns, drawn, width)


def row_line(totals: Totals, policy: Policy) -> str:
    several = totals.checkpoints.planned != 1
    facts = [passed_cell(totals, policy) + (" passed" if several else "")]
    if totals.checkpoints.evaluated:
        facts += [f"{group.lower()} {rate(totals, group)}" for group in GroupType if totals.pass_rates[group].total]
        facts += [f"{word} {count}" for word, count in zip(("broke", "repaired"), changes(totals), strict=True)]
    if several:
        facts.append(f"no verdict {without_verdict(totals)}")
    return ", ".join([*facts, *([format_duration(totals.durations.total)] if totals.checkpoints.evaluated else [])])


def passed_cell(totals: Totals, policy: Policy) -> str:
    planned, passed = totals.checkpoints.planned, totals.passed[policy].count
    if planned != 1:
        return f"{passed}/{planned}"
    return "NO VERDICT" if without_verdict(totals) else "PASSED" if passed else "NOT PASSED"


def rate(totals: Totals, group: GroupType) -> str:
    """Of one checkpoint the tests, of several their share."""
    found = totals.pass_rates[group]
    if not found.total:
        return "-"
    return f"{found.passed}/{found.total}" if totals.checkpoints.planned == 1 else percent(found.passed / found.total)


def changes(totals: Totals) -> tuple[str, str]:
    """Broke and repaired; nothing where there is nothing to compare with."""
    found = totals.regressions
    return (str(found.introduced), str(found.repaired)) if found.compared else ("-", "-")


def percent(share: float) -> str:
    """What is not all is never 100%, and what is not nothing never 0%."""
    if share <= 0 or share >= 1:
        return "100%" if share >= 1 else "0.0%"
    tenths = math.floor(share * 1000 + 0.5 + 1e-9)
    return f"{min(max(tenths, 1), 999) / 10:.1f}%"


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}" if minutes else f"{seconds:.1f} s"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def without_verdict(totals: Totals) -> int:
    return totals.checkpoints.planned - totals.checkpoints.evaluated


def closing(summary: RunSummary, lines: Sequence[CheckpointLine], policy: Policy) -> Iterator[StyledLine]:
    """What is said below the tables; the verdict last."""
    if len(summary.runs) > SHOWN_RUNS:
        yield f"... and {len(summary.runs) - SHOWN_RUNS} more runs: see {SUMMARY}", "dim"
    yield from _reasons("trouble", [(one.label, one.reason) for one in summary.troubles], "yellow")
    troubled = {one.label for one in summary.troubles}
    unknown = [line for line in lines if line.state != "evaluated" and line.label not in troubled]
    unknown.sort(key=lambda line: line.state)  # what failed before what was not begun
    yield from _reasons("no verdict", [(line.label, line.reason or "") for line in unknown], "magenta")
    if summary.totals.retried:
        yield f"retried: {plural(summary.totals.retried, 'checkpoint')} needed more than one attempt", "yellow"
    yield from _warnings(lines)
    if summary.samples:
        found = summary.samples.policies[policy]
        for what, estimate in (("checkpoints", found.checkpoints), ("whole problems", found.solved)):
            yield f"{what} over {summary.samples.runs} runs: {estimated(estimate)}", ""
    yield verdict(summary, policy)


def _warnings(lines: Sequence[CheckpointLine]) -> Iterator[StyledLine]:
    found = list(dict.fromkeys(warning for line in lines for warning in line.warnings))
    for warning in found[:SHOWN_REASONS]:
        yield f"warning: {first_line(warning)}", "yellow"
    if len(found) > SHOWN_REASONS:
        yield f"... and {plural(len(found) - SHOWN_REASONS, 'more warning')}: see {LINES}", "dim"


def _reasons(word: str, found: Sequence[tuple[str, str]], style: str) -> Iterator[StyledLine]:
    for label, reason in found[:SHOWN_REASONS]:
        yield f"{word} {one_line(label)}: {first_line(reason)}", style
    if len(found) > SHOWN_REASONS:
        yield f"... and {len(found) - SHOWN_REASONS} more: see {SUMMARY}", "dim"


def estimated(estimate: Estimate) -> str:
    """The mean over runs, how sure it is, and pass@k."""
    bounds = estimate.interval
    sure = f" ({percent(bounds.low)} to {percent(bounds.high)} with 95% confidence)" if bounds else ""
    tries = "".join(f", pass@{k} {percent(share)}" for k, share in estimate.pass_at_k.items())
    return f"{percent(estimate.rate)} passed{sure}{tries}"


def verdict(summary: RunSummary, policy: Policy) -> StyledLine:
    totals = summary.totals
    planned, passed, missing = totals.checkpoints.planned, totals.passed[policy].count, without_verdict(totals)
    if planned == 0:
        return "NO VERDICT: there is no checkpoint to evaluate", UNSURE
    if missing:
        return f"NO VERDICT for {missing} of {plural(planned, 'checkpoint')}; {passed} passed ({policy})", UNSURE
    counted = f"{passed} of {plural(planned, 'checkpoint')}"
    if summary.troubles:
        return (
            f"NO VERDICT on the whole: {plural(len(summary.troubles), 'trouble')}; {counted} passed ({policy})",
            UNSURE,
        )
    word, style = ("PASSED", "bold green") if passed == planned else ("NOT PASSED", "bold red")
    return f"{word} ({policy}): {counted}", style


def _style(totals: Totals, policy: Policy) -> str:
    if without_verdict(totals):
        return "magenta"
    return "green" if totals.passed[policy].count == totals.checkpoints.planned else "red"


def _shade(found: GroupRate) -> str:
    return "dim" if not found.total else "" if found.passed == found.total else "red"


def _few(count: int) -> str:
    return str(count) if count else "-"
