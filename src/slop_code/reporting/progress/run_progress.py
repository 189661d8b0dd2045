"""Progress of a run on standard error: a live view on a terminal, a line for each event elsewhere."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Self, TextIO, cast

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from slop_code._io import BestEffortStream
from slop_code.evaluation.groups import GroupType
from slop_code.reporting.progress.counted_work import left_text
from slop_code.reporting.progress.progress_text import progress_text
from slop_code.reporting.progress.ticker import Ticker
from slop_code.reporting.resource_text import failure_note
from slop_code.reporting.text import first_line, format_duration, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from slop_code.execution.progress_events import ProgressEvent
    from slop_code.reporting.progress.progress_tracker import ProgressTracker, Verdict
    from slop_code.runs.checkpoint_lines import CheckpointFacts
    from slop_code.runs.jobs.job_records import JobPostponed, JobRetrying, JobStarted, SubmissionOutcome

PACE_INTERVAL_S = 30.0
SILENCE_S = 5.0
"""The pace is printed after so many seconds without a line, too."""
TICK_INTERVAL_S = 1.0
SHOWN_RUNNING = 8
STYLES: dict[Verdict, str] = {"passed": "green", "not passed": "red", "no verdict": "magenta", "part only": ""}


class RunProgress:
    """Called by the thread that drives the run; any thread may call `step`."""

    def __init__(
        self,
        tracker: ProgressTracker,
        kept: int,
        *,
        live: bool,
        stream: TextIO | None = None,
        tick_interval: float = TICK_INTERVAL_S,
    ) -> None:
        """`kept` is the number of submissions that are up to date and have no job.

        `tick_interval` is in seconds, between two checks whether the pace is to be printed.
        """
        self._tracker = tracker
        self._kept = kept
        out = cast("TextIO", BestEffortStream(stream or sys.stderr))
        self._console = Console(file=out, highlight=False, force_terminal=True if live else None)
        self._live = _live(self._console, self.view) if live else None
        self._last_pace = self._last_line = 0.0
        self._pace_lock = threading.Lock()
        self._ticker = Ticker(self.tick, tick_interval)
        self._step: ProgressEvent | None = None

    def __enter__(self) -> Self:
        total, kept = self._tracker.total, self._kept
        self._print(f"{total} to evaluate" + (f", {kept} up to date" if kept else ""))
        if self._live and total:
            self._live.start()
        elif total:
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ticker.stop()
        if self._live:
            self._live.stop()
        if self._tracker.total:
            self._print(ending(self._tracker))

    def started(self, event: JobStarted) -> None:
        self._tracker.started(event.job, event.pairs)
        self.tick()

    def retrying(self, event: JobRetrying) -> None:
        self._tracker.retrying(event.job)
        again = f"again in {format_duration(event.delay)}" if event.delay else "again"
        reason = first_line(event.attempt.reason)
        self._print(f"{self._position()} RETRYING {one_line(event.job.label)} {again}: {reason}")
        self.tick()

    def postponed(self, event: JobPostponed) -> None:
        self._tracker.retrying(event.job)
        reason = first_line(event.attempt.reason)
        self._print(f"{self._position()} POSTPONED {one_line(event.job.label)} to the end of the run: {reason}")
        self.tick()

    def finished(self, outcome: SubmissionOutcome) -> None:
        if outcome.source == "up_to_date":
            return
        verdict = self._tracker.finished(outcome)
        if not self._live or verdict != "passed":
            self._print(f"{self._position()} {outcome_line(outcome, verdict)}", STYLES[verdict])
        self.tick()

    def step(self, event: ProgressEvent) -> None:
        """A step within an evaluation; several jobs in a row with the same step are shown once."""
        if event != self._step:
            self._step = event
            self._print(f"· {one_line(progress_text(event))}", "dim")

    def tests_done(self, event: ProgressEvent) -> None:
        """Any thread may call this, several times a second."""
        self._tracker.tests_done(event)

    def stopping(self) -> None:
        """Any thread may call this, but no signal handler."""
        self._tracker.stopping = True
        running = len(self._tracker.running)
        self._print(f"stopping: finishing {running} that run; Ctrl-C again stops now", "bold yellow")

    def tick(self) -> None:
        """Prints the pace from time to time, where there is no live view."""
        if self._live:
            return
        with self._pace_lock:
            elapsed, ended = self._tracker.elapsed, self._tracker.done >= self._tracker.total
            silent = elapsed - self._last_line >= SILENCE_S
            if ended or not (silent or elapsed - self._last_pace >= PACE_INTERVAL_S):
                return
            self._last_pace = elapsed
        self._print(f"· {self._position()} {pace(self._tracker)}", "dim")

    def view(self) -> Group:
        """The live view: verdicts so far, and running jobs."""
        tracker = self._tracker
        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=tracker.total, completed=tracker.done, width=24)
        head.add_row(Text(f"{tracker.done}/{tracker.total}", "bold"), bar, verdict_counts(tracker))
        running = tracker.running
        rows = [(format_duration(elapsed), tests_text(tests), job) for job, elapsed, tests in running[:SHOWN_RUNNING]]
        width = max((len(tests) for _, tests, _ in rows), default=0)
        shown = [
            Text(
                f"  {elapsed:>8}  {tests:<{width}}{'  ' if width else ''}{one_line(job.label)}",
                no_wrap=True,
                overflow="ellipsis",
            )
            for elapsed, tests, job in rows
        ]
        if len(running) > SHOWN_RUNNING:
            shown.append(Text(f"  ... and {len(running) - SHOWN_RUNNING} more", "dim"))
        return Group(head, Text(pace(tracker), "dim"), *shown)

    def _position(self) -> str:
        total = str(self._tracker.total)
        return f"[{self._tracker.done:>{len(total)}}/{total}]"

    def _print(self, line: str, style: str = "") -> None:
        self._last_line = self._tracker.elapsed
        self._console.print(Text(line, style), soft_wrap=True)


def _live(console: Console, view: Callable[[], Group]) -> Live:
    """Standard output is not redirected, as it may be a file."""
    return Live(console=console, get_renderable=view, transient=True, redirect_stdout=False)


def outcome_line(outcome: SubmissionOutcome, verdict: Verdict) -> str:
    facts = outcome.facts
    text = f"{verdict.upper()} {one_line(outcome.submission.label)}"
    if verdict in ("no verdict", "part only"):
        return f"{text}: {first_line(facts.reason or 'no reason given')}"
    took = "(cached)" if outcome.source == "cached" else format_duration(facts.duration)
    note = failure_note(facts) if verdict == "not passed" else ""
    return f"{text} {group_counts(facts)} {took}" + (f": {note}" if note else "")


def group_counts(facts: CheckpointFacts) -> str:
    """Passed tests of all, then the groups with tests that did not pass."""
    passed, total = sum(facts.pass_counts.values()), sum(facts.total_counts.values())
    counts = [(group, facts.pass_counts.get(group, 0), facts.total_counts.get(group, 0)) for group in GroupType]
    broken = ", ".join(f"{group.lower()} {good}/{of}" for group, good, of in counts if good < of)
    return f"{passed}/{total}" + (f" ({broken})" if broken else "")


def verdict_counts(tracker: ProgressTracker) -> Text:
    shown = [pair for pair in tracker.counts.items() if pair[1] or pair[0] != "no verdict"]
    return Text("  ").join(Text(f"{count} {verdict}", STYLES[verdict]) for verdict, count in shown)


def pace(tracker: ProgressTracker) -> str:
    """Running jobs, jobs per minute and remaining time, as far as they are known."""
    rate, left, running = tracker.per_minute, tracker.left, tracker.running
    known = [tests for _, _, tests in running if tests is not None and tests.count]
    done, total = sum(tests.count for tests in known), sum(tests.total for tests in known)
    facts = [
        "stopping" if tracker.stopping else "",
        f"{len(running)} running" + (f" ({done} of {total} tests)" if known else ""),
        f"{rate:.1f} checkpoints a minute" if rate else "",
        left_text(left),
    ]
    return ", ".join(fact for fact in facts if fact)


def tests_text(tests: ProgressEvent | None) -> str:
    """Empty where nothing is known, as on another machine or in a container."""
    if tests is None or not tests.count:
        return ""
    return f"{tests.count}/{tests.total} tests" + (f", {tests.failed} failed" if tests.failed else "")


def ending(tracker: ProgressTracker) -> str:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in tracker.counts.items())
    cached = f" ({tracker.cached} cached)" if tracker.cached else ""
    return f"{tracker.done} of {tracker.total} done{cached} in {format_duration(tracker.elapsed)}: {counts}"
