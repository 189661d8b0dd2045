"""Progress of a run: verdicts so far, running jobs, remaining time."""

from __future__ import annotations

import os.path
import time
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from slop_code.reporting.progress.counted_work import CountedWork, advance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slop_code.evaluation.policy import Policy
    from slop_code.execution.progress_events import ProgressEvent
    from slop_code.runs.checkpoint_lines import CheckpointFacts
    from slop_code.runs.jobs.job_records import Job, Submission, SubmissionOutcome

Verdict = Literal["passed", "not passed", "no verdict", "part only"]
VERDICTS: tuple[Verdict, ...] = ("passed", "not passed", "no verdict")
PART_VERDICTS: tuple[Verdict, ...] = ("part only", "no verdict")
"""With a selection of tests, which is no verdict and no failure."""


def verdict_of(facts: CheckpointFacts, policy: Policy) -> Verdict:
    if facts.state != "evaluated":
        return "no verdict"
    return "passed" if facts.passes(policy) else "not passed"


def time_left(
    waiting: Sequence[float | None],
    running: Sequence[tuple[float | None, float]],
    finished: Sequence[float],
    slots: int,
) -> float | None:
    """Remaining seconds by the expected duration of each job; None until a duration is known.

    `running` has the expected and the elapsed seconds. A job without an expected duration counts as the mean of the
    finished jobs, else of the expected durations. The longest remaining job is a lower bound.
    """
    expected = [seconds for seconds in (*waiting, *(seconds for seconds, _ in running)) if seconds is not None]
    if not (waiting or running):
        return 0.0
    if not (finished or expected):
        return None
    mean = fmean(finished or expected)
    left = [mean if seconds is None else seconds for seconds in waiting]
    left += [max((mean if seconds is None else seconds) - elapsed, 0.0) for seconds, elapsed in running]
    return max(sum(left) / max(slots, 1), max(left))


def expected_duration(known: float | None, elapsed: float, tests: CountedWork | None, now: float) -> float | None:
    """Expected seconds of a running job: those of its tests that are done count by their share, the rest is `known`."""
    left = tests.left(now) if tests else None
    if tests is None or left is None:
        return known
    share = tests.event.count / tests.event.total
    return elapsed + left if known is None else share * (elapsed + left) + (1 - share) * known


@dataclass(slots=True)
class _RunningJob:
    job: Job
    since: float
    location: tuple[str, str, str]
    """Of its submission, as events name it."""

    pairs: int = 1
    """Pairs that share its expected duration."""

    tests: CountedWork | None = None


class ProgressTracker:
    """Written by one thread, and `tests_done` by others; any thread may read."""

    def __init__(
        self,
        jobs: Sequence[Job],
        slots: int,
        policy: Policy,
        clock: Callable[[], float] = time.monotonic,
        *,
        part: bool = False,
    ) -> None:
        """`part` says that only a part of the tests runs."""
        self.total = sum(len(job.targets) for job in jobs)
        self.counts = dict.fromkeys(PART_VERDICTS if part else VERDICTS, 0)
        self.cached = 0
        self.stopping = False
        self._slots = slots
        self._policy = policy
        self._part = part
        self._clock = clock
        self._start = clock()
        self._waiting = dict(enumerate(jobs))
        self._running: dict[int, _RunningJob] = {}
        self._durations: list[float] = []
        self._numbers = {id(target): number for number, job in enumerate(jobs) for target in job.targets}

    @property
    def done(self) -> int:
        return sum(self.counts.values())

    @property
    def elapsed(self) -> float:
        return self._clock() - self._start

    @property
    def running(self) -> list[tuple[Job, float, ProgressEvent | None]]:
        """Each with its elapsed seconds, and its tests as far as they are known; the longest first."""
        now, jobs = self._clock(), list(self._running.values())  # a copy, as another thread may start a job
        jobs.sort(key=lambda each: each.since)
        return [(each.job, now - each.since, each.tests.event if each.tests else None) for each in jobs]

    @property
    def per_minute(self) -> float | None:
        """Jobs that ran; results from the cache say nothing about the pace."""
        return len(self._durations) * 60 / self.elapsed if self._durations and self.elapsed else None

    @property
    def left(self) -> float | None:
        """Remaining seconds; after a stop, only of the jobs that still run."""
        waiting = [] if self.stopping else [job.expected_s for job in list(self._waiting.values()) if not job.cached]
        now, running = self._clock(), []
        for each in list(self._running.values()):
            elapsed = now - each.since
            known = None if each.job.expected_s is None else each.job.expected_s / each.pairs
            running.append((expected_duration(known, elapsed, each.tests, now), elapsed))
        return time_left(waiting, running, self._durations, self._slots)

    def started(self, job: Job, pairs: int = 1) -> None:
        number = self._number(job.targets[0])
        self._waiting.pop(number, None)
        target = job.targets[0]
        location = os.path.realpath(target.path), target.problem.name, target.checkpoint.name
        self._running[number] = _RunningJob(job, self._clock(), location, pairs)

    def tests_done(self, event: ProgressEvent) -> None:
        for each in list(self._running.values()):
            if each.location == (event.name, event.problem, event.checkpoint):
                each.tests = advance(each.tests, event, self._clock())

    def retrying(self, job: Job) -> None:
        number = self._number(job.targets[0])
        self._running.pop(number, None)
        self._waiting[number] = job

    def finished(self, outcome: SubmissionOutcome) -> Verdict:
        """A job ends with the first outcome of its submissions."""
        number = self._number(outcome.submission)
        self._waiting.pop(number, None)
        if started := self._running.pop(number, None):
            self._durations.append(self._clock() - started.since)
        part = self._part and outcome.facts.state == "not_evaluated"
        verdict: Verdict = "part only" if part else verdict_of(outcome.facts, self._policy)
        self.counts[verdict] += 1
        self.cached += outcome.source == "cached"
        return verdict

    def _number(self, submission: Submission) -> int:
        """By identity, as two submissions may be equal; -1 for a submission without a job."""
        return self._numbers.get(id(submission), -1)
