"""Lines about the plan of a run, for `eval --dry-run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.reporting.progress.progress_tracker import time_left
from slop_code.reporting.text import first_line, format_duration, one_line, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.reporting.terminal import StyledLine
    from slop_code.runs.jobs.job_records import Submission
    from slop_code.runs.jobs.plan import Plan

    PlanRow = tuple[Submission, str, str]

STYLES = {"run": "bold", "shared": "", "cached": "cyan", "up to date": "dim", "issue": "magenta"}


def plan_lines(plan: Plan, slots: int) -> Iterator[StyledLine]:
    rows = sorted(plan_rows(plan), key=lambda row: (row[0].run, row[0].problem.name, row[0].checkpoint.order))
    for submission, word, reason in rows:
        because = f": {first_line(reason)}" if reason else ""
        yield f"{word} {one_line(submission.label)}{because}", STYLES[word]
    for issue in plan.issues:
        yield f"issue {one_line(issue.label)}: {first_line(issue.reason)}", STYLES["issue"]
    yield plan_counts(plan), "bold"
    yield expected_time(plan, slots), ""


def plan_rows(plan: Plan) -> Iterator[PlanRow]:
    """Each submission with the action and the reason for it."""
    for submission, _ in plan.up_to_date:
        yield submission, "up to date", ""
    for job in plan.jobs:
        first, *others = job.targets
        took = "" if job.expected_s is None or job.cached else f" ({format_duration(job.expected_s)} expected)"
        yield first, "cached" if job.cached else "run", f"{plan.reasons[first.key]}{took}"
        for other in others:
            reason = plan.reasons[other.key]
            yield other, "cached" if job.cached else "shared", reason if job.cached else f"{reason}, with {first.label}"


def plan_counts(plan: Plan) -> str:
    counts = {
        "to run": sum(not job.cached for job in plan.jobs),
        "that share their result": sum(len(job.targets) - 1 for job in plan.jobs if not job.cached),
        "cached": sum(len(job.targets) for job in plan.jobs if job.cached),
        "up to date": len(plan.up_to_date),
    }
    listed = ", ".join(f"{count} {what}" for what, count in counts.items())
    issues = f"; issues: {len(plan.issues)}" if plan.issues else ""
    return f"{plural(sum(counts.values()), 'submission')}: {listed}{issues}"


def expected_time(plan: Plan, slots: int) -> str:
    waiting = [job.expected_s for job in plan.jobs if not job.cached]
    if not waiting:
        return "expected time: nothing to run"
    left = time_left(waiting, [], [], slots)
    if left is None:
        return "expected time: not known before something has run"
    return f"expected time: about {format_duration(left)} with {slots} at a time"
