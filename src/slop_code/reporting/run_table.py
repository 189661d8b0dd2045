"""Results of runs on standard output: tables and colours on a terminal, a line for each row elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from slop_code._suggestions import first_names
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.report import NO_REASON
from slop_code.reporting.agent_text import agents_of
from slop_code.reporting.failures.checkpoint_reasons import MAX_READ_RESULTS, not_passed
from slop_code.reporting.resource_text import failure_note
from slop_code.reporting.table_layout import TableColumn, TableRow, layout_table
from slop_code.reporting.terminal import print_lines
from slop_code.reporting.text import (
    GROUP_HEADINGS,
    JSON_HAS_ALL,
    first_line,
    format_clock,
    format_duration,
    format_percent,
    more_line,
    one_line,
    plural,
    rates_text,
)
from slop_code.reporting.word_meanings import chances_meaning, rates_meaning
from slop_code.runs.run_layout import LINES_FILE, RESULT_FILE, SUMMARY_FILE
from slop_code.runs.summary import totals_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from slop_code.evaluation.policy import Policy
    from slop_code.reporting.terminal import StyledLine
    from slop_code.runs.checkpoint_lines import CheckpointLine
    from slop_code.runs.samples import Estimate
    from slop_code.runs.summary import GroupRate, RunSummary, Totals

    Rows = Sequence[tuple[str, str, Totals]]
    """For each row its group (may be empty), its name and its totals."""

SHOWN_CHECKPOINTS = 30
SHOWN_RUNS = 30
SHOWN_REASONS = 10
SHOWN_LABELS = 3
NO_VERDICT_STYLE = "bold magenta"


def show_run(
    summary: RunSummary,
    lines: Sequence[CheckpointLine],
    policy: Policy,
    console: Console,
    failure_reasons: Mapping[str, str] | None = None,
    *,
    is_written: bool = True,
) -> None:
    """`failure_reasons` are of checkpoints that did not pass, by their labels. For `is_written` see `closing_lines`."""
    for row_kind, rows in sections(summary, lines, policy):
        drawn = table(row_kind, rows, policy, console.width) if console.is_terminal else None
        for line in drawn or plain(row_kind, rows, policy):
            console.print(line, soft_wrap=True)
        if drawn:
            console.print()
    reasons, explain = failure_reasons or {}, console.is_terminal
    print_lines(console, closing_lines(summary, lines, policy, reasons, explain=explain, is_written=is_written))


def sections(summary: RunSummary, lines: Sequence[CheckpointLine], policy: Policy) -> Iterator[tuple[str, Rows]]:
    """Rows for each checkpoint, or for each problem where there are too many; then for each of several runs."""
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


def plain(row_kind: str, rows: Rows, policy: Policy) -> Iterator[Text]:
    for group, name, totals in rows:
        label = f"{group}/{name}" if group else name
        yield Text(f"{row_kind} {one_line(label)}: {row_line(totals, policy)}")


def table(row_kind: str, rows: Rows, policy: Policy, width: int) -> list[Text] | None:
    """Columns that are empty in every row are left out. None where the terminal is too narrow."""
    groups = [group for group in GroupType if any(totals.pass_rates[group].total for *_, totals in rows)]
    missing = row_kind != "checkpoint" and any(without_verdict(totals) for *_, totals in rows)
    columns = [
        TableColumn("passed", right=False),
        *(TableColumn(GROUP_HEADINGS[group]) for group in groups),
        TableColumn("broke", drop=3),
        TableColumn("recovered", drop=2),
        *([TableColumn("no verdict")] * missing),
        TableColumn("time", drop=1),
    ]
    drawn = []
    for group, name, totals in rows:
        cells = [
            Text(passed_cell(totals, policy), _style(totals, policy)),
            *(Text(rate(totals, test_group), _rate_style(totals.pass_rates[test_group])) for test_group in groups),
            *map(Text, changes(totals)),
            *([Text(str(without_verdict(totals) or "-"))] * missing),
            Text(format_clock(totals.durations.total) if totals.checkpoints.evaluated else "-"),
        ]
        drawn.append(TableRow(one_line(group), one_line(name), cells))
    return layout_table(row_kind, columns, drawn, width)


def row_line(totals: Totals, policy: Policy) -> str:
    several = totals.checkpoints.planned != 1
    kept = totals.checkpoints.not_looked_at_again
    facts = [passed_cell(totals, policy) + (" passed" if several else " (not looked at again)" if kept else "")]
    if totals.checkpoints.evaluated:
        facts += [f"{group.lower()} {rate(totals, group)}" for group in GroupType if totals.pass_rates[group].total]
        facts += [f"{word} {count}" for word, count in zip(("broke", "recovered"), changes(totals), strict=True)]
    if several:
        facts.append(f"no verdict {without_verdict(totals)}")
        facts += [f"not looked at again {kept}"] if kept else []
    return ", ".join([*facts, *([format_duration(totals.durations.total)] if totals.checkpoints.evaluated else [])])


def passed_cell(totals: Totals, policy: Policy) -> str:
    planned, passed = totals.checkpoints.planned, totals.passed[policy].count
    if planned != 1:
        return f"{passed}/{planned}"
    return "NO VERDICT" if without_verdict(totals) else "PASSED" if passed else "NOT PASSED"


def rate(totals: Totals, group: GroupType) -> str:
    """Number of tests in a single checkpoint, share of tests in several."""
    counts = totals.pass_rates[group]
    if not counts.total:
        return "-"
    if totals.checkpoints.planned == 1:
        return f"{counts.passed}/{counts.total}"
    return format_percent(counts.passed / counts.total)


def changes(totals: Totals) -> tuple[str, str]:
    """Numbers of tests that broke and that recovered; a dash where nothing was compared."""
    regressions = totals.regressions
    return (str(regressions.introduced), str(regressions.repaired)) if regressions.compared else ("-", "-")


def without_verdict(totals: Totals) -> int:
    return totals.checkpoints.planned - totals.checkpoints.evaluated


def closing_lines(
    summary: RunSummary,
    lines: Sequence[CheckpointLine],
    policy: Policy,
    failure_reasons: Mapping[str, str],
    *,
    explain: bool,
    is_written: bool,
) -> Iterator[StyledLine]:
    """The lines below the tables; the verdict is the last. `explain`: with the meanings of the words.

    With `is_written`, summary and lines are in files of the runs. Those of a part of a run are in none.
    """
    rest = f": see {SUMMARY_FILE}" if is_written else JSON_HAS_ALL
    yield from more_line(summary.runs, SHOWN_RUNS, f" runs{rest}")
    kept = {item.label: item.reason for item in summary.not_looked_at_again}
    issues = [(issue.label, issue.reason) for issue in summary.issues if issue.label not in kept]
    yield from _reasons("issue", issues, "yellow", rest)
    yield from _reasons("not looked at again", list(kept.items()), "yellow", rest)
    with_issue = {label for label, _ in issues}
    unknown = [line for line in lines if line.state != "evaluated" and line.label not in with_issue]
    unknown.sort(key=lambda line: line.state)  # infrastructure failures before checkpoints that were not started
    yield from _reasons("no verdict", [(line.label, line.reason or NO_REASON) for line in unknown], "magenta", rest)
    failed = not_passed(lines, policy)
    limit = f" (only the first {MAX_READ_RESULTS} results are read)" if len(failed) > MAX_READ_RESULTS else ""
    known = [(line.label, failure_reasons.get(line.label) or failure_note(line)) for line in failed]
    yield from _reasons("not passed", known, "red", f" not passed{limit}: slop-code report says why")
    if summary.totals.retried:
        yield f"retried: {plural(summary.totals.retried, 'checkpoint')} needed more than one attempt", "yellow"
    warnings = [*summary.warnings, *(warning for line in lines for warning in line.warnings)]
    yield from _warnings(warnings, LINES_FILE if is_written else f"{RESULT_FILE} of each checkpoint")
    if rates := rates_text(summary.totals):
        yield rates, ""
        if explain:
            yield f"  {rates_meaning()}", "dim"
    if agent := agents_of(summary):
        yield f"agent: {agent}", ""
    yield from _samples(summary, policy, explain=explain)
    yield verdict(summary, policy)


def _samples(summary: RunSummary, policy: Policy, *, explain: bool) -> Iterator[StyledLine]:
    if not summary.samples:
        return
    estimates = summary.samples.policies[policy]
    for what, estimate in (("checkpoints", estimates.checkpoints), ("whole problems", estimates.solved)):
        yield f"{what} over {summary.samples.runs} runs: {estimate_text(estimate)}", ""
    if explain:
        yield f"  {chances_meaning()}", "dim"
    for run in summary.samples.copies:
        yield f"{one_line(run)}: the same submissions as in another run, so it counts as no further sample", "yellow"


def _warnings(given: Sequence[str], all_warnings: str) -> Iterator[StyledLine]:
    """`all_warnings` names what has those that are not shown."""
    warnings = list(dict.fromkeys(given))
    for warning in warnings[:SHOWN_REASONS]:
        yield f"warning: {first_line(warning)}", "yellow"
    if len(warnings) > SHOWN_REASONS:
        yield f"... and {plural(len(warnings) - SHOWN_REASONS, 'more warning')}: see {all_warnings}", "dim"


def _reasons(word: str, reasons: Sequence[tuple[str, str]], style: str, rest: str) -> Iterator[StyledLine]:
    """A reason that several have is said once, with the first of their labels; an empty one is only counted.

    `rest`: the end of the line that counts what is not shown.
    """
    labels: dict[str, list[str]] = {}
    for label, reason in reasons:
        if reason:
            labels.setdefault(reason, []).append(one_line(label))
    for reason, same in list(labels.items())[:SHOWN_REASONS]:
        yield f"{word} {first_names(same, SHOWN_LABELS)}: {first_line(reason)}", style
    shown = sum(len(same) for same in list(labels.values())[:SHOWN_REASONS])
    yield from more_line(reasons, shown, rest)


def estimate_text(estimate: Estimate) -> str:
    """The mean over runs, its confidence interval, and pass@k."""
    pass_at_k = "".join(f", pass@{k} {format_percent(share)}" for k, share in estimate.pass_at_k.items())
    return f"{format_percent(estimate.rate)} passed{interval_text(estimate)}{pass_at_k}"


def interval_text(estimate: Estimate) -> str:
    """What follows the mean; empty if there are too few runs for an interval."""
    bounds = estimate.interval
    return f" ({format_percent(bounds.low)} to {format_percent(bounds.high)} with 95% confidence)" if bounds else ""


def verdict(summary: RunSummary, policy: Policy) -> StyledLine:
    totals = summary.totals
    planned, passed, missing = totals.checkpoints.planned, totals.passed[policy].count, without_verdict(totals)
    if planned == 0 and summary.issues:
        return "NO VERDICT: no checkpoint could be evaluated; the issues above say why", NO_VERDICT_STYLE
    if planned == 0:
        return "NO VERDICT: there is no checkpoint to evaluate", NO_VERDICT_STYLE
    if missing:
        return (
            f"NO VERDICT for {missing} of {plural(planned, 'checkpoint')}; {passed} passed ({policy})",
            NO_VERDICT_STYLE,
        )
    counted = f"{passed} of {plural(planned, 'checkpoint')}"
    if kept := totals.checkpoints.not_looked_at_again:
        keep = "keeps its" if kept == 1 else "keep their"
        these = f"{kept} of {plural(planned, 'checkpoint')} {keep} last result"
        return f"NOT LOOKED AT AGAIN: {counted} passed ({policy}); {these}", NO_VERDICT_STYLE
    if summary.issues:
        return (
            f"NO VERDICT on the whole: {plural(len(summary.issues), 'issue')}; {counted} passed ({policy})",
            NO_VERDICT_STYLE,
        )
    word, style = ("PASSED", "bold green") if passed == planned else ("NOT PASSED", "bold red")
    return f"{word} ({policy}): {counted}", style


def _style(totals: Totals, policy: Policy) -> str:
    if without_verdict(totals):
        return "magenta"
    return "green" if totals.passed[policy].count == totals.checkpoints.planned else "red"


def _rate_style(counts: GroupRate) -> str:
    return "dim" if not counts.total else "" if counts.passed == counts.total else "red"
