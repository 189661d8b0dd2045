"""Queue of the reward service: evaluations by the scheduler of runs, which has caches, retries and executors."""

from __future__ import annotations

import contextlib
import os
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from slop_code._io import os_error_text
from slop_code.bridges.agent_workspace import MAX_UNPACKED
from slop_code.bridges.service.queue_records import (
    SHUTTING_DOWN,
    EvaluationOutcome,
    QueuedEvaluation,
    QueueFullError,
)
from slop_code.bridges.service.server_inputs import ServerInputs
from slop_code.errors import InfrastructureError, SlopCodeError, UsageError
from slop_code.evaluation.command import check_pytest_args
from slop_code.evaluation.evaluator.submission_source import submission_folder
from slop_code.evaluation.policy import as_policy
from slop_code.evaluation.pytest_arguments import refuse_empty_selection
from slop_code.evaluation.report import CorrectnessResults
from slop_code.runs.executors import executor_class, is_remote
from slop_code.runs.input_signatures import InputSignatures
from slop_code.runs.jobs.job_feed import JobFeed
from slop_code.runs.jobs.job_records import JobStarted, Submission, SubmissionOutcome
from slop_code.runs.jobs.plan import make_job
from slop_code.runs.jobs.run_control import RunControl
from slop_code.runs.jobs.scheduler import SchedulerContext, cached_results, run_jobs
from slop_code.runs.result_cache import ResultCache
from slop_code.runs.result_cache_key import ExpectedDigests, key_of_result
from slop_code.runs.run_layout import RESULT_FILE

if TYPE_CHECKING:
    from slop_code.bridges.service.server_inputs import QueueSettings
    from slop_code.bridges.service.service_records import EvaluateRequest
    from slop_code.execution.cache import Cache
    from slop_code.runs.executors import Executor
    from slop_code.runs.jobs.job_records import Job, SubmissionKey

READERS = 4
"""Results that are read at a time."""

MAX_RETRY_AFTER_S = 60
TRIM_INTERVAL = 500
"""Evaluations after which the result cache is reduced to its limit."""

CHANGED_MEANWHILE = "the submission or the problem changed while the request waited; send it again"


class ServiceQueue:
    """All methods may be called from any thread. `submit` blocks while the submission is unpacked and read."""

    def __init__(self, settings: QueueSettings, cache: Cache) -> None:
        self.settings = settings
        self.mean_duration_s = 0.0
        """Mean duration of the last evaluations."""

        self._cache, self._result_cache = cache, ResultCache(cache)
        self.inputs, self._signatures = ServerInputs(settings), InputSignatures(None)
        self._remote = is_remote(settings.executor)
        self._lock = threading.Lock()
        self._reserved = 0
        self._pending: dict[SubmissionKey, QueuedEvaluation] = {}
        self._by_key: dict[str, QueuedEvaluation] = {}
        self._closed = False
        self._finished_count = 0
        self._control = RunControl()
        self._feed = JobFeed(self._control)
        self._readers = ThreadPoolExecutor(READERS, "service-reader")
        self._executor: Executor = executor_class(settings.executor)(
            settings.workers, settings.address, lambda _: None, cache
        )
        self._scheduler = threading.Thread(target=self._schedule, name="service-scheduler")
        self._scheduler.start()

    @property
    def slots(self) -> int:
        return self._executor.slots

    def counts(self) -> tuple[int, int]:
        """Evaluations that wait, and those that run."""
        with self._lock:
            running = sum(each.running for each in self._pending.values())
            return self._reserved + len(self._pending) - running, running

    def retry_after(self) -> int:
        """Seconds after which there will probably be room."""
        waiting, running = self.counts()
        return round(min(MAX_RETRY_AFTER_S, max(1.0, self.mean_duration_s * (waiting + running) / self.slots / 2)))

    def submit(self, request: EvaluateRequest, *, bounded: bool = True) -> QueuedEvaluation:
        """Raises UsageError for a wrong request, and QueueFullError. The caller withdraws it when it has its answer."""
        self._reserve(bounded=bounded)
        try:
            return self._enqueue(request)
        except OSError as error:
            raise InfrastructureError(os_error_text(error, self._cache.root)) from error
        finally:
            with self._lock:
                self._reserved -= 1

    def _reserve(self, *, bounded: bool) -> None:
        with self._lock:
            if self._closed:
                raise InfrastructureError(SHUTTING_DOWN)
            full = bounded and self._reserved + len(self._pending) >= self.settings.max_jobs
            self._reserved += not full
        if full:
            raise QueueFullError(self.retry_after())

    def _enqueue(self, request: EvaluateRequest) -> QueuedEvaluation:
        as_policy(request.policy)
        pytest_args = tuple(check_pytest_args(request.tests))
        problem = self.inputs.problem(request.problem)
        checkpoint, environment = problem.checkpoint(request.checkpoint), self.inputs.environment(request, problem)
        with contextlib.ExitStack() as folders:
            path = request.submission.path
            source = request.submission.content() if path is None else self.inputs.allowed_folder(path)
            folder = folders.enter_context(submission_folder(source, self._cache, max_bytes=MAX_UNPACKED))
            # A submission that was unpacked has a session folder already: each holds a descriptor for its lock.
            session = folder.parent if path is None else folders.enter_context(self._cache.session_folder())
            submission = Submission(
                problem=problem,
                checkpoint=checkpoint,
                environment=environment,
                path=folder,
                output=session / "result",
            )
            digests = ExpectedDigests(self._remote).digests(submission, self._signatures)
            job = make_job([(submission, digests)], self._result_cache, False, frozenset(), self._remote)
            if pytest_args:
                job = replace(job, key=None, pytest_args=pytest_args)
            if (cached := cached_results(job, self._result_cache, self._remote)) is not None:
                return QueuedEvaluation.of_cached(job, cached[0])
            return self._join_or_add(job, folders)

    def _join_or_add(self, job: Job, folders: contextlib.ExitStack) -> QueuedEvaluation:
        """A new evaluation, which takes over the folders, or the pending one with the same inputs."""
        with self._lock:
            if self._closed:
                raise InfrastructureError(SHUTTING_DOWN)
            if job.key is not None and (pending := self._by_key.get(job.key)) is not None:
                pending.requests += 1
                return pending
            evaluation = QueuedEvaluation(job, folders.pop_all())
            self._pending[job.targets[0].key] = evaluation
            if job.key is not None:
                self._by_key[job.key] = evaluation
            self._feed.add(job)  # with the lock, so that a failed scheduler loses both or none
            return evaluation

    def withdraw(self, evaluation: QueuedEvaluation) -> None:
        """Called once for each `submit`. An evaluation that nobody waits for is cancelled."""
        with self._lock:
            evaluation.requests -= 1
            if evaluation.requests or evaluation.ended.done():
                return
            self._forget_key(evaluation)
        self._feed.cancel(evaluation.job)

    def _forget_key(self, evaluation: QueuedEvaluation) -> None:
        key = evaluation.job.key
        if key is not None and self._by_key.get(key) is evaluation:
            del self._by_key[key]

    def _schedule(self) -> None:
        """Runs until the control ends it. If the scheduler itself fails, as on a full disk, what is pending ends."""
        while True:
            try:
                self._run_scheduler()
                return
            except Exception as error:  # noqa: BLE001  (the service goes on)
                reason = str(error) if isinstance(error, SlopCodeError) else traceback.format_exc()
                with self._lock:  # what comes later has its turn
                    self._feed.take()
                    lost = list(self._pending.values())
                for evaluation in lost:
                    self._settle(evaluation, EvaluationOutcome("infrastructure_failure", reason=reason))
                if self._control.finishing:
                    return
                self._control.wait(1.0)

    def _run_scheduler(self) -> None:
        context = SchedulerContext(
            executor=self._executor,
            result_cache=self._result_cache,
            control=self._control,
            retries=self.settings.retries,
            hidden=(*self.inputs.allowed, *self.settings.hidden),
            remote=self._remote,
            feed=self._feed,
        )
        with contextlib.closing(run_jobs([], context)) as events:
            for event in events:
                key = event.submission.key if isinstance(event, SubmissionOutcome) else event.job.targets[0].key
                evaluation = self._pending.get(key)
                if evaluation is None:  # it ended with an earlier failure of the scheduler
                    continue
                evaluation.running = isinstance(event, JobStarted)
                if isinstance(event, SubmissionOutcome):
                    self._readers.submit(self._finish, evaluation, event)

    def _finish(self, evaluation: QueuedEvaluation, finished: SubmissionOutcome) -> None:
        try:
            outcome = self._outcome(evaluation, finished)
        except Exception:  # noqa: BLE001  (whoever waits gets an answer)
            reason = f"an error in slop-code itself\n{traceback.format_exc()}"
            outcome = EvaluationOutcome("infrastructure_failure", reason=reason)
        with self._lock:
            if finished.facts.duration:
                self.mean_duration_s += (finished.facts.duration - self.mean_duration_s) / 10
            self._finished_count += 1
            is_trim_due = self._finished_count % TRIM_INTERVAL == 0
        self._settle(evaluation, outcome)
        if is_trim_due:
            self._result_cache.trim()

    def _outcome(self, evaluation: QueuedEvaluation, finished: SubmissionOutcome) -> EvaluationOutcome:
        """A request is rejected here only if its filters select no test, which only pytest can find out."""
        facts, output, job = finished.facts, finished.submission.output, evaluation.job
        if output is None or not os.path.exists(output / RESULT_FILE):
            if not evaluation.requests or self._control.stopped:
                return EvaluationOutcome.of_cancelled()
            return EvaluationOutcome("infrastructure_failure", reason=facts.reason, attempts=facts.attempts)
        key = key_of_result(finished.submission.environment, facts, remote=self._remote)
        if key is not None and job.key is not None and key != job.key:
            return EvaluationOutcome("infrastructure_failure", reason=CHANGED_MEANWHILE)
        results = CorrectnessResults.load(output / RESULT_FILE)
        try:
            refuse_empty_selection(results)
        except UsageError as error:
            return EvaluationOutcome("rejected", reason=str(error))
        return EvaluationOutcome.of(results, "cached" if finished.source == "cached" else "evaluated")

    def _settle(self, evaluation: QueuedEvaluation, outcome: EvaluationOutcome) -> None:
        """Does nothing if the evaluation has an outcome: the scheduler may fail while a result is read."""
        with self._lock:
            if self._pending.pop(evaluation.job.targets[0].key, None) is None:
                return
            self._forget_key(evaluation)
        with contextlib.suppress(Exception):  # whatever it is: the next session removes what is left
            evaluation.folders.close()
        evaluation.ended.set_result(outcome)

    def close(self) -> None:
        """Take no more requests, and cancel those that are pending."""
        with self._lock:
            self._closed = True
        self._control.stop()
        self._scheduler.join()
        self._readers.shutdown()
        for evaluation in list(self._pending.values()):
            self._settle(evaluation, EvaluationOutcome.of_cancelled())
        self._executor.close()
        self._result_cache.trim()
