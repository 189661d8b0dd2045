"""What a run would do, without doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from slop_code.reporting.progress_tracker import time_left
from slop_code.reporting.text import first_line, format_duration, one_line, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from slop_code.runs.job_records import Submission
    from slop_code.runs.plan import Plan

    PlanRow = tuple[Submission, str, str]

STYLES = {"run": "bold", "shared": "", "stored": "cyan", "up to date": "dim", "trouble": "magenta"}


def show_plan(plan: Plan, slots: int, console: Console) -> None:
    rows = sorted(plan_rows(plan), key=lambda row: (row[0].run, row[0].problem.name, row[0].checkpoint.order))
    for submission, word, reason in rows:
        told = f": {first_line(reason)}" if reason else ""
        console.print(Text(f"{word} {one_line(submission.label)}{told}", STYLES[word]), soft_wrap=True)
    for issue in plan.issues:
        line = f"trouble {one_line(issue.label)}: {first_line(issue.reason)}"
        console.print(Text(line, STYLES["trouble"]), soft_wrap=True)
    console.print(Text(plan_counts(plan), "bold"), soft_wrap=True)
    console.print(Text(expected_time(plan, slots)), soft_wrap=True)


def plan_rows(plan: Plan) -> Iterator[PlanRow]:
    """Each submission with what would be done for it, and why."""
    for submission, _ in plan.kept:
        yield submission, "up to date", ""
    for job in plan.jobs:
        first, *others = job.targets
        took = "" if job.expected_s is None or job.stored else f" ({format_duration(job.expected_s)} expected)"
        yield first, "stored" if job.stored else "run", f"{plan.reason(job, first)}{took}"
        for other in others:
            reason = plan.reason(job, other)
            yield other, "stored" if job.stored else "shared", reason if job.stored else f"{reason}, with {first.label}"


def plan_counts(plan: Plan) -> str:
    counts = {
        "to run": sum(not job.stored for job in plan.jobs),
        "that share their result": sum(len(job.targets) - 1 for job in plan.jobs if not job.stored),
        "stored": sum(len(job.targets) for job in plan.jobs if job.stored),
        "up to date": len(plan.kept),
    }
    said = ", ".join(f"{count} {what}" for what, count in counts.items())
    issues = f"; troubles: {len(plan.issues)}" if plan.issues else ""
    return f"{plural(sum(counts.values()), 'submission')}: {said}{issues}"


def expected_time(plan: Plan, slots: int) -> str:
    waiting = [job.expected_s for job in plan.jobs if not job.stored]
    if not waiting:
        return "expected time: nothing to run"
    left = time_left(waiting, [], [], slots)
    if left is None:
        return "expected time: not known before something has run"
    return f"expected time: about {format_duration(left)} with {slots} at a time"
