"""Keeping an executor busy: what starts when, what is tried again, when it ends."""

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
from slop_code.evaluation.pairs import shared_network
from slop_code.evaluation.report import Attempt
from slop_code.execution.cancellation import EvaluationCancelledError
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.deliver import deliver
from slop_code.runs.job_records import (
    JobRequest,
    JobResult,
    JobRetrying,
    JobStarted,
    OutcomeSource,
    RunEvent,
    SubmissionOutcome,
)
from slop_code.runs.plan import duration_name, result_cache_key
from slop_code.runs.result_archive import results_in

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from slop_code.runs.executors import Executor
    from slop_code.runs.job_records import Job, Submission
    from slop_code.runs.result_cache import Claim, ResultCache
    from slop_code.runs.run_control import News, Retries, RunControl

CLAIMED_S = 0.5
"""How often to look whether another evaluator has ended what we want too."""


@dataclass(slots=True)
class _Task:
    job: Job
    attempts: tuple[Attempt, ...] = ()
    claim: Claim | None = None
    weight: int = 0
    """While it runs; slots may come and go meanwhile."""

    def let_go(self) -> None:
        if self.claim is not None:
            self.claim.release()
            self.claim = None


@dataclass(slots=True)
class _Driver:
    executor: Executor
    store: ResultCache
    retries: Retries
    control: RunControl
    waiting: list[_Task]
    """The next one last."""

    overwrite: bool = False
    hidden: tuple[Path, ...] = ()
    running: dict[Future[JobResult], _Task] = field(default_factory=dict)
    later: list[tuple[float, int, _Task]] = field(default_factory=list)
    """A heap by the moment at which each is to be tried again."""

    numbers: Iterator[int] = field(default_factory=itertools.count)
    used: int = 0
    news: News = field(init=False)
    """What has ended; None: there is something to look at."""

    def events(self) -> Generator[RunEvent, None, None]:
        with self.control.listening() as self.news:
            try:
                while not self.control.stopped:
                    yield from self._begin()
                    if not self.running and not self.later:
                        return
                    yield from self._end(self._next())
                yield from self._stop()
            finally:
                for _ in self._stop():  # where nobody listens any more
                    pass

    def _begin(self) -> Iterator[RunEvent]:
        """As many as there is room for; one that is too heavy for the executor runs alone."""
        if self.control.finishing:
            self._forget()
        while self.later and self.later[0][0] <= time.monotonic():
            self.waiting.append(heapq.heappop(self.later)[2])
        while self.waiting and not self.control.finishing:
            weight = self._weight(self.waiting[-1])
            if self.used and self.used + weight > self.executor.slots:
                return
            task = self.waiting.pop()
            if (stored := self._stored(task)) is not None:
                yield from self._delivered(task, *stored, "stored")
            elif task.claim is None and task.job.key is not None:
                self._again(task, CLAIMED_S)
            else:
                self._submit(task, weight)
                yield JobStarted(task.job)

    def _stored(self, task: _Task) -> tuple[CheckpointFacts, bytes] | None:
        """Looked for again once it is claimed: another evaluator may have ended it in between."""
        if task.job.key is None or task.claim is not None:
            return None
        if (found := self._look_up(task.job, task.job.key)) is not None:
            return found
        task.claim = self.store.claim(task.job.key)
        return self._look_up(task.job, task.job.key) if task.claim is not None else None

    def _look_up(self, job: Job, key: str) -> tuple[CheckpointFacts, bytes] | None:
        parcel = None if self.overwrite else self.store.get(key)
        if parcel is None:
            return None
        try:
            facts = CheckpointFacts.of(results_in(parcel))
        except ResultError:  # of an earlier format: what is made now takes its place
            return None
        return (facts, parcel) if _key_of(job, facts) == key else None

    def _weight(self, task: _Task) -> int:
        """One that shares its network with others runs alone: a port can be taken only once."""
        target = task.job.targets[0]
        alone = shared_network(target.environment) is not None
        return self.executor.slots if alone else min(target.problem.parallel, self.executor.slots)

    def _submit(self, task: _Task, weight: int) -> None:
        target = task.job.targets[0]
        work = JobRequest(
            problem=target.problem,
            checkpoint=target.checkpoint.name,
            environment=target.environment,
            submission=target.path,
            digest=task.job.digest,
            attempts=task.attempts,
            weight=weight,
            hidden=self.hidden,
        )
        try:
            future = self.executor.submit(work)
        except Exception as error:  # noqa: BLE001  (what it cannot take now it may take later)
            future = Future()
            future.set_exception(error)
        self.running[future] = task
        task.weight = weight
        self.used += weight
        future.add_done_callback(self.news.put)

    def _next(self) -> Future[JobResult] | None:
        """The next that has ended; None when something else is to be looked at."""
        wait = max(0.0, self.later[0][0] - time.monotonic()) if self.later else None
        try:
            return self.news.get(timeout=wait)
        except Empty:
            return None

    def _end(self, future: Future[JobResult] | None) -> Iterator[RunEvent]:
        if future is None or future not in self.running:
            return
        task = self.running.pop(future)
        self.used -= task.weight
        done = _done(future, task)
        if done.facts.state == "infrastructure_failure" and not done.final and self._may_retry(task):
            attempt = Attempt(reason=done.facts.reason or "no reason", duration=done.facts.duration)
            delay = self.retries.delay(len(task.attempts))
            task.attempts = (*task.attempts, attempt)
            self._again(task, delay)
            yield JobRetrying(task.job, attempt, delay)
            return
        self._remember(task.job, done)
        yield from self._delivered(task, done.facts, done.parcel, "evaluated")

    def _may_retry(self, task: _Task) -> bool:
        return len(task.attempts) < self.retries.times and not self.control.finishing

    def _remember(self, job: Job, done: JobResult) -> None:
        """Under what the result itself says it rests on, in case the submission changed since the plan."""
        key = _key_of(job, done.facts)
        if key is not None and done.parcel is not None:
            self.store.remember(duration_name(job.targets[0]), done.facts.duration)
            self.store.put(key, done.parcel)

    def _delivered(
        self, task: _Task, facts: CheckpointFacts, parcel: bytes | None, source: OutcomeSource
    ) -> Iterator[RunEvent]:
        """The claim ends with it, whatever happens."""
        try:
            judged = _judged(task.job, facts)
            if len(judged) < len(task.job.targets):
                self.waiting.append(_Task(replace(task.job, targets=task.job.targets[len(judged) :])))
            for target in judged:
                yield SubmissionOutcome(target, deliver(target, facts, parcel), source)
        finally:
            task.let_go()

    def _again(self, task: _Task, delay: float) -> None:
        heapq.heappush(self.later, (time.monotonic() + delay, next(self.numbers), task))

    def _forget(self) -> None:
        for task in [*self.waiting, *(task for _, _, task in self.later)]:
            task.let_go()
        self.waiting, self.later = [], []

    def _stop(self) -> Iterator[RunEvent]:
        """Whatever still runs is ended, and waited for; one that has come to a verdict by itself keeps it."""
        self._forget()
        for future in list(self.running):
            self.executor.stop(future)
        while self.running:
            ended = self.news.get()
            if ended is None or (task := self.running.pop(ended, None)) is None:
                continue
            done = _done(ended, task)
            if done.facts.state == "evaluated":
                self._remember(task.job, done)
                with contextlib.suppress(InfrastructureError):  # it can be delivered the next time
                    yield from self._delivered(task, done.facts, done.parcel, "evaluated")
            task.let_go()


def run_jobs(
    jobs: Sequence[Job],
    executor: Executor,
    store: ResultCache,
    *,
    retries: Retries,
    control: RunControl,
    overwrite: bool = False,
    hidden: Sequence[Path] = (),
) -> Generator[RunEvent, None, None]:
    """Every job to its end; when this generator is closed, what runs is ended.

    No submission sees anything of `hidden`, wherever it lies.
    """
    waiting = [_Task(job) for job in reversed(jobs)]
    return _Driver(executor, store, retries, control, waiting, overwrite, tuple(hidden)).events()


def _key_of(job: Job, facts: CheckpointFacts) -> str | None:
    """Where a result belongs in the store, by what it says itself; None: it has no verdict."""
    if facts.state != "evaluated" or facts.digests is None:
        return None
    return result_cache_key(job.targets[0].environment, facts.digests, facts.evaluation_version)


def _done(future: Future[JobResult], task: _Task) -> JobResult:
    """An executor that loses a job (its node died, it was cancelled) has not judged anyone."""
    if future.cancelled():
        return JobResult.failed(str(EvaluationCancelledError()), task.attempts, final=True)
    error = future.exception()
    if error is None:
        return future.result()
    return JobResult.failed(f"the executor lost this job: {type(error).__name__}: {error}", task.attempts)


def _judged(job: Job, facts: CheckpointFacts) -> tuple[Submission, ...]:
    """All targets; one that has changed since they were found equal speaks for itself alone."""
    found = facts.digests.submission if facts.digests else None
    return job.targets if found in (None, job.digest) else job.targets[:1]
