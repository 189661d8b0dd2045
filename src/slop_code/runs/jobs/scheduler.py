"""Scheduler: fills the slots of an executor, retries infrastructure failures, and delivers results.

Jobs that were starved run again in a quiet phase at the end, one at a time.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import time
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from queue import Empty
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError, ResultError
from slop_code.evaluation.report import Attempt
from slop_code.evaluation.result_files.replace_result import OTHER_FOLDER
from slop_code.evaluation.roster import shared_network
from slop_code.execution.cache import remove_tree
from slop_code.execution.cancellation import MAX_WAIT_S, EvaluationCancelledError
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.jobs.job_records import (
    JobPostponed,
    JobRequest,
    JobResult,
    JobRetrying,
    JobStarted,
    SubmissionOutcome,
)
from slop_code.runs.jobs.pair_planning import HORIZON, RunningWork, WaitingWork, expected_left, slots_for_next
from slop_code.runs.jobs.run_control import Retries, RunControl
from slop_code.runs.result_archive import add_attempts, deliver, read_archived_results
from slop_code.runs.result_cache_key import duration_key, key_of_result

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.report import CorrectnessResults, TestAttempt
    from slop_code.runs.executors import Executor
    from slop_code.runs.jobs.job_feed import JobFeed
    from slop_code.runs.jobs.job_records import Job, OutcomeSource, RunEvent, Submission
    from slop_code.runs.jobs.run_control import WakeQueue
    from slop_code.runs.result_cache import ResultCache, ResultClaim

CHANGED = "the submission changed since the evaluation was planned; its result is discarded"
CLAIM_POLL_S = 0.5
"""Interval at which to look for the result of another evaluator that holds the claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerContext:
    executor: Executor
    result_cache: ResultCache
    control: RunControl = field(default_factory=RunControl)
    retries: Retries = field(default_factory=Retries)
    overwrite: bool = False
    """Ignore what the result cache holds."""

    hidden: tuple[Path, ...] = ()
    """Folders that no submission may see."""

    remote: bool = False
    """The executor is remote."""

    unchanged: Callable[[Submission], bool] | None = None
    """Whether a submission is still the one of the plan; a result of a submission that is not is discarded.

    If it is None, the result counts for what was evaluated.
    """

    foreign_step: str | None = OTHER_FOLDER
    """See `new_result`."""

    feed: JobFeed | None = None
    """More jobs, until the control ends it. There is no quiet phase at the end then: starved jobs come next."""


@dataclass(slots=True)
class _Task:
    job: Job
    attempts: tuple[Attempt, ...] = ()
    archives: tuple[bytes | None, ...] = ()
    """What each of them left."""

    claim: ResultClaim | None = None
    starved: Mapping[str, TestAttempt] = field(default_factory=dict)
    """What its tests said when it was starved; it is for the quiet phase then."""

    weight: int = 0
    """Slots that the task takes while it runs; stored, as the executor's slots may change meanwhile."""

    started: float = 0.0
    cancelled: bool = False

    @property
    def alone(self) -> bool:
        return bool(self.starved)

    @property
    def pairs(self) -> int:
        """Pairs that its slots are for, by its plan."""
        return self.weight if self.job.max_pairs > 1 and not self.alone else 1

    @property
    def work(self) -> RunningWork:
        elapsed = time.monotonic() - self.started
        return RunningWork(self.weight, expected_left(self.job.expected_s, self.pairs, elapsed))

    def release_claim(self) -> None:
        if self.claim is not None:
            self.claim.release()
            self.claim = None


@dataclass(slots=True)
class _Scheduler:
    context: SchedulerContext
    waiting: list[_Task]
    """The next task last."""

    running: dict[Future[JobResult], _Task] = field(default_factory=dict)
    delayed: list[tuple[float, int, _Task]] = field(default_factory=list)
    """Heap of tasks by the time at which each is to be started."""

    starved: list[_Task] = field(default_factory=list)
    """Tasks for the quiet phase."""

    numbers: Iterator[int] = field(default_factory=itertools.count)
    used_slots: int = 0
    finished: WakeQueue = field(init=False)
    """Futures that have ended, or None if the control has changed."""

    def events(self) -> Generator[RunEvent, None, None]:
        with self.context.control.wake_queue() as self.finished:
            try:
                while not self.context.control.stopped:
                    yield from self._take_from_feed()
                    yield from self._start_tasks()
                    if not self.running and not self.delayed and not self.starved and self._feed_ended():
                        return
                    yield from self._handle(self._next_finished())
                yield from self._stop()
            finally:
                for _ in self._stop():  # the generator was closed: nobody reads these events
                    pass

    def _feed_ended(self) -> bool:
        return self.context.feed is None or self.context.control.finishing

    def _take_from_feed(self) -> Iterator[RunEvent]:
        if self.context.feed is None:
            return
        added, cancelled = self.context.feed.take()
        self.waiting[:0] = [_Task(job) for job in reversed(added)]
        for job in cancelled:
            yield from self._cancel(job)

    def _cancel(self, job: Job) -> Iterator[RunEvent]:
        """A job that waits ends here; one that runs ends with its result."""
        for future, task in self.running.items():
            if task.job is job:
                task.cancelled = True
                self.context.executor.stop(future)
                return
        for task in [*self.waiting, *(task for _, _, task in self.delayed)]:
            if task.job is job:
                self.waiting = [other for other in self.waiting if other is not task]
                self.delayed = [entry for entry in self.delayed if entry[2] is not task]
                heapq.heapify(self.delayed)
                cancelled = JobResult.failed(str(EvaluationCancelledError()), task.attempts, final=True)
                yield from self._deliver(task, cancelled, "rejected")
                return

    def _start_tasks(self) -> Iterator[RunEvent]:
        """Start as many as there are slots for; a task that is heavier than all slots runs alone."""
        if self.context.control.finishing:
            self._drop_waiting()
        while self.delayed and self.delayed[0][0] <= time.monotonic():
            self.waiting.append(heapq.heappop(self.delayed)[2])
        if self.starved and not (self.waiting or self.running or self.delayed):
            self.waiting.append(self.starved.pop(0))
        while self.waiting and not self.context.control.finishing:
            weight = self._weight(self.waiting[-1])
            if self.used_slots and (not weight or self.used_slots + weight > self.context.executor.slots):
                return
            task = self.waiting.pop()
            if (cached := self._cached(task)) is not None:
                yield from self._deliver(task, self._current(task, cached), "cached")
            elif task.claim is None and task.job.key is not None:
                self._delay(task, CLAIM_POLL_S)
            else:
                self._submit(task, weight)
                yield JobStarted(task.job, task.pairs)

    def _cached(self, task: _Task) -> JobResult | None:
        """The cache is read again once the key is claimed: another evaluator may have finished in between."""
        if task.job.key is None or task.claim is not None:
            return None
        if (cached := self._look_up(task.job)) is not None:
            return cached
        task.claim = self.context.result_cache.claim(task.job.key)
        return self._look_up(task.job) if task.claim is not None else None

    def _look_up(self, job: Job) -> JobResult | None:
        if self.context.overwrite:
            return None
        cached = cached_results(job, self.context.result_cache, self.context.remote)
        return None if cached is None else JobResult(CheckpointFacts.of(cached[0]), cached[1])

    def _weight(self, task: _Task) -> int:
        """Slots to start it with, or 0 if it has to wait.

        A job that shares its network runs alone: a port can be taken once.
        """
        target, slots = task.job.targets[0], self.context.executor.slots
        if task.alone or shared_network(target.environment) is not None:
            return slots
        if task.job.max_pairs == 1:
            return min(target.problem.fixed_pairs, slots)
        following = reversed(self.waiting[-HORIZON * slots :])
        waiting = [WaitingWork(each.job.expected_s, each.job.max_pairs) for each in following]
        return slots_for_next(waiting, slots - self.used_slots, [each.work for each in self.running.values()])

    def _submit(self, task: _Task, weight: int) -> None:
        target = task.job.targets[0]
        request = JobRequest(
            problem=target.problem,
            checkpoint=target.checkpoint.name,
            environment=target.environment,
            submission=target.path,
            digest=task.job.digest,
            attempts=task.attempts,
            weight=weight,
            starved=task.starved,
            hidden=self.context.hidden,
            pytest_args=task.job.pytest_args,
        )
        try:
            future = self.context.executor.submit(request)
        except Exception as error:  # noqa: BLE001  (a job that the executor rejects now may be accepted later)
            future = Future()
            future.set_exception(error)
        self.running[future] = task
        task.weight, task.started = weight, time.monotonic()
        self.used_slots += weight
        future.add_done_callback(self.finished.put)

    def _next_finished(self) -> Future[JobResult] | None:
        """None when the control has changed, a delayed task is due, or nothing happened for a while."""
        due = self.delayed[0][0] - time.monotonic() if self.delayed else MAX_WAIT_S
        try:
            return self.finished.get(timeout=min(max(0.0, due), MAX_WAIT_S))
        except Empty:
            return None

    def _handle(self, future: Future[JobResult] | None) -> Iterator[RunEvent]:
        if future is None or future not in self.running:
            return
        task = self.running.pop(future)
        self.used_slots -= task.weight
        result = self._current(task, _result_of(future, task))
        if result.starved and not task.alone and not task.cancelled:
            attempt = _end_attempt(task, result)
            task.starved = result.starved
            (self.starved if self.context.feed is None else self.waiting).append(task)
            yield JobPostponed(task.job, attempt)
            return
        if result.facts.state == "infrastructure_failure" and not result.final and self._may_retry(task):
            delay = self.context.retries.delay(len(task.attempts))
            attempt = _end_attempt(task, result)
            self._delay(task, delay)
            yield JobRetrying(task.job, attempt, delay)
            return
        result = _with_attempts(result, task)
        self._put_into_cache(task.job, result)
        yield from self._deliver(task, result, "evaluated")

    def _current(self, task: _Task, result: JobResult) -> JobResult:
        """The result, or none where it may belong to another submission than the planned one."""
        unchanged, digests = self.context.unchanged, result.facts.digests
        planned = digests is None or digests.submission in (None, task.job.digest)
        if unchanged is None or (planned and all(unchanged(target) for target in task.job.targets)):
            return result
        _remove_folder(result)
        return JobResult.failed(CHANGED, task.attempts, final=True, duration=result.facts.duration)

    def _may_retry(self, task: _Task) -> bool:
        left = len(task.attempts) - task.alone < self.context.retries.times
        return left and not task.cancelled and not self.context.control.finishing

    def _put_into_cache(self, job: Job, result: JobResult) -> None:
        """Use the key of the digests in the result itself: the submission may have changed since the plan."""
        key = key_of_result(job.targets[0].environment, result.facts, remote=self.context.remote)
        if key is not None and result.archive is not None:
            seconds = result.facts.duration if result.serial_s is None else result.serial_s
            self.context.result_cache.save_duration(duration_key(job.targets[0]), seconds)
            self.context.result_cache.put(key, result.archive)

    def _deliver(self, task: _Task, result: JobResult, source: OutcomeSource) -> Iterator[RunEvent]:
        """The claim and the temporary folder are released, whatever happens."""
        try:
            targets = _targets_of(task.job, result.facts)
            if len(targets) < len(task.job.targets):
                self.waiting.append(_Task(replace(task.job, targets=task.job.targets[len(targets) :])))
            for number, target in enumerate(targets, start=1):
                keep = target.key in task.job.verdicts
                move, step = number == len(targets), self.context.foreign_step
                facts = deliver(target, result, move=move, keep_verdict=keep, foreign_step=step)
                yield SubmissionOutcome(target, facts, source)
        finally:
            _remove_folder(result)
            task.release_claim()

    def _delay(self, task: _Task, seconds: float) -> None:
        heapq.heappush(self.delayed, (time.monotonic() + seconds, next(self.numbers), task))

    def _drop_waiting(self) -> None:
        for task in [*self.waiting, *self.starved, *(task for _, _, task in self.delayed)]:
            task.release_claim()
        self.waiting, self.starved, self.delayed = [], [], []

    def _stop(self) -> Iterator[RunEvent]:
        """Cancel running jobs and wait for them; a job that reached a verdict all the same is delivered."""
        self._drop_waiting()
        for future in list(self.running):
            self.context.executor.stop(future)
        while self.running:
            ended = self._next_finished()
            if ended is None or (task := self.running.pop(ended, None)) is None:
                continue
            result = self._current(task, _result_of(ended, task))
            if result.facts.state == "evaluated":
                self._put_into_cache(task.job, result)
                with contextlib.suppress(InfrastructureError):  # the next run delivers it from the cache
                    yield from self._deliver(task, result, "evaluated")
            task.release_claim()


def run_jobs(jobs: Sequence[Job], context: SchedulerContext) -> Generator[RunEvent, None, None]:
    """Run every job to its end. Closing the generator cancels running jobs."""
    return _Scheduler(context, [_Task(job) for job in reversed(jobs)]).events()


def cached_results(job: Job, cache: ResultCache, remote: bool) -> tuple[CorrectnessResults, bytes] | None:
    """The result of this job in the result cache, and its archive; None without one."""
    archive = None if job.key is None else cache.get(job.key)
    if archive is None:
        return None
    try:
        results = read_archived_results(archive)
    except ResultError:  # of an earlier format: the new result replaces it
        return None
    key = key_of_result(job.targets[0].environment, CheckpointFacts.of(results), remote=remote)
    return (results, archive) if key == job.key else None


def _result_of(future: Future[JobResult], task: _Task) -> JobResult:
    """A job that the executor lost (its node died, it was cancelled) has no verdict."""
    if future.cancelled():
        return JobResult.failed(str(EvaluationCancelledError()), task.attempts, final=True)
    error = future.exception()
    if error is None:
        return future.result()
    return JobResult.failed(f"the executor lost this job: {type(error).__name__}: {error}", task.attempts)


def _end_attempt(task: _Task, result: JobResult) -> Attempt:
    """Keep what an attempt left that is no verdict. The job runs again."""
    _remove_folder(result)
    attempt = Attempt(reason=result.facts.reason or "no reason", duration=result.facts.duration)
    task.attempts, task.archives = (*task.attempts, attempt), (*task.archives, result.archive)
    return attempt


def _with_attempts(result: JobResult, task: _Task) -> JobResult:
    """The result with the evidence of earlier attempts; without it where that does not fit."""
    if result.archive is None or not any(task.archives):
        return result
    try:
        archive = add_attempts(result.archive, task.archives)
    except ResultError:
        return result
    _remove_folder(result)
    return replace(result, archive=archive, folder=None)


def _targets_of(job: Job, facts: CheckpointFacts) -> tuple[Submission, ...]:
    """All targets; but if the evaluated submission changed since the plan, the result is that of the first alone."""
    evaluated = facts.digests.submission if facts.digests else None
    return job.targets if evaluated in (None, job.digest) else job.targets[:1]


def _remove_folder(result: JobResult) -> None:
    if result.folder is not None:
        with contextlib.suppress(OSError):  # the executor removes the rest when it is closed
            remove_tree(result.folder)
