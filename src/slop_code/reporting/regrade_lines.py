"""Lines about a regrade: outcome of each checkpoint, and changes of its tests."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from slop_code.reporting.text import JSON_HAS_ALL, first_line, more_line, one_line, plural
from slop_code.verification.regrade.regrade_record import ChangeKind, RegradeOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.reporting.terminal import StyledLine
    from slop_code.runs.jobs.job_records import RunIssue
    from slop_code.verification.regrade.regrade_record import (
        RegradedCheckpoint,
        RegradedTest,
        RegradeRecord,
        TestState,
    )
    from slop_code.verification.regrade.regrade_runs import PlannedCheckpoint

SHOWN_TESTS = 20
KIND_TEXTS = {
    ChangeKind.NEW: "test new",
    ChangeKind.GONE: "test gone",
    ChangeKind.CHANGED: "test changed",
    ChangeKind.STATUS: "another status",
    ChangeKind.GROUP: "group changed",
}
SAME_TEST = "same test, another status"


def regrade_lines(run: str, record: RegradeRecord) -> Iterator[StyledLine]:
    counts = Counter(checkpoint.outcome for checkpoint in record.checkpoints)
    total = (
        ", ".join(f"{counts[outcome]} {outcome}" for outcome in RegradeOutcome if counts[outcome]) or "no checkpoints"
    )
    yield f"{one_line(run)}: {total}", "bold"
    for checkpoint in record.checkpoints:
        if checkpoint.outcome != RegradeOutcome.UNCHANGED:
            yield from regraded_lines(checkpoint)


def regraded_lines(checkpoint: RegradedCheckpoint) -> Iterator[StyledLine]:
    reason = f" ({first_line(checkpoint.reason)})" if checkpoint.reason else ""
    style = "magenta" if checkpoint.outcome == RegradeOutcome.NOT_REGRADED else ""
    yield f"{one_line(checkpoint.problem)} {one_line(checkpoint.checkpoint)}: {checkpoint.outcome}{reason}", style
    for verdict in checkpoint.verdicts:
        yield f"  {one_line(verdict.policy)}: {_passed(verdict.old)} before, {_passed(verdict.new)} now", ""
    shown = [test for test in checkpoint.tests if test.kinds != [ChangeKind.CHANGED]]
    for test in shown[:SHOWN_TESTS]:
        yield f"  {one_line(test.test)}: {change_text(test)}", ""
    yield from more_line(shown, SHOWN_TESTS, JSON_HAS_ALL, indent="  ")
    if same := len(checkpoint.tests) - len(shown):
        yield f"  {plural(same, 'changed test')} with the same status", "dim"


def change_text(test: RegradedTest) -> str:
    """The kinds of the change, both states, and the reasons."""
    why = f"; {'; '.join(map(one_line, test.why))}" if test.why else ""
    return f"{kinds_text(test)}, {_states(test.old, test.new)}{why}"


def kinds_text(test: RegradedTest) -> str:
    if ChangeKind.STATUS in test.kinds and ChangeKind.CHANGED not in test.kinds:
        return ", ".join(SAME_TEST if kind == ChangeKind.STATUS else KIND_TEXTS[kind] for kind in test.kinds)
    return ", ".join(KIND_TEXTS[kind] for kind in test.kinds)


def _states(old: TestState | None, new: TestState | None) -> str:
    before, after = (_state(state) for state in (old, new))
    return after if before == after or not before else f"{before} before, {after} now" if after else f"{before} before"


def _state(state: TestState | None) -> str:
    if state is None:
        return ""
    return f"{state.status} ({state.group}{', quarantined' if state.quarantined else ''})"


def _passed(value: bool) -> str:
    return "passed" if value else "not passed"


def regrade_plan_lines(planned: Sequence[PlannedCheckpoint], issues: Sequence[RunIssue]) -> Iterator[StyledLine]:
    for item in planned:
        reason = f": {first_line(item.reason)}" if item.reason else ""
        yield f"{item.outcome:15}  {one_line(item.submission.label)}{reason}", "dim" if item.reason is None else ""
    for issue in issues:
        outcome = RegradeOutcome.NOT_REGRADED
        yield f"{outcome:15}  {one_line(issue.label)}: {first_line(issue.reason)}", "magenta"
    counts = Counter(item.outcome for item in planned)
    total = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    yield f"planned: {total or 'no checkpoints'}", "bold"
