"""Durable jobs of the reward service: stored before they are accepted, and resumed after the server was killed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import re
import secrets
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from slop_code._io import os_error_text, read_bounded, write_atomic
from slop_code.bridges.service.access_token import make_state_folder
from slop_code.bridges.service.queue_records import EvaluationOutcome, QueueFullError
from slop_code.bridges.service.service_records import EvaluateRequest, EvaluationAnswer, JobAnswer
from slop_code.errors import InfrastructureError, SlopCodeError, UsageError
from slop_code.execution.cache import open_lock, try_lock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from slop_code.bridges.service.queue_records import QueuedEvaluation
    from slop_code.bridges.service.service_queue import ServiceQueue

REQUEST, RESULT, DAMAGED = ".request.json", ".result.json", ".damaged"
MAX_RECORD_BYTES = 1 << 30
MAX_RESULTS = 10_000
"""Results that are kept. No job is accepted beyond that, as none is removed before its time."""

KEPT_S = 24 * 3600.0
"""Seconds for which a result is kept."""

CLEANING_S = 60.0
"""Interval at which old results are looked for, and the others counted anew."""

NO_FILE = {errno.ELOOP, errno.EINVAL, errno.EISDIR}
"""Errors of reading a link or a folder; others may pass."""

_ID = re.compile(r"[0-9a-f]{32}")


class DurableJobs:
    """A folder with a file for each job: its request, and its result instead when it ended.

    One server at a time uses it.
    """

    def __init__(self, folder: Path, queue: ServiceQueue) -> None:
        make_state_folder(folder)
        self._folder, self._queue = folder, queue
        self._evaluations: dict[str, QueuedEvaluation] = {}
        self._lock = threading.Lock()
        self._unwritten: dict[str, EvaluationAnswer] = {}
        self._unqueued: set[str] = set()
        self._closing = False
        self._cleaned, self._results = -math.inf, 0
        self._held = open_lock(folder / ".lock")
        if not try_lock(self._held, fcntl.LOCK_EX):
            self._held.close()
            raise UsageError(f"{folder}: another server uses this folder; give each its own with --state")

    def resume(self) -> tuple[int, int]:
        """Queue the jobs without a result that an earlier server accepted.

        Returns their number, and that of damaged requests, which are set aside.
        """
        for unfinished in self._folder.glob(".*.json.*"):  # of a server that was killed while it wrote
            if unfinished.is_file():
                unfinished.unlink()
        resumed, damaged = 0, 0
        for job in self._ids(REQUEST):
            if self._path(job, RESULT).is_file():
                self._path(job, REQUEST).unlink()
                continue
            try:
                request = self._request(job)
            except ValueError:
                self._path(job, REQUEST).rename(self._path(job, DAMAGED))
                damaged += 1
                continue
            except InfrastructureError:
                self._leave_for_later(job)
            else:
                with contextlib.suppress(InfrastructureError):
                    self._resume(job, request)
            resumed += 1
        return resumed, damaged

    def _leave_for_later(self, job: str) -> None:
        with self._lock:
            self._unqueued.add(job)

    def _request(self, job: str) -> EvaluateRequest:
        """Raises ValueError for a damaged request, InfrastructureError for one that cannot be read now."""
        try:
            data = read_bounded(self._path(job, REQUEST), MAX_RECORD_BYTES)
        except OSError as error:
            if error.errno in NO_FILE:
                raise ValueError(error.strerror) from error
            raise InfrastructureError(f"{os_error_text(error, self._folder)}; ask again") from error
        return EvaluateRequest.model_validate_json(data)

    def accept(self, request: EvaluateRequest) -> str:
        """The id of a job that will have a result, even if this process is killed. Raises as `ServiceQueue.submit`."""
        self._remove_old()
        if self._results >= MAX_RESULTS:
            raise QueueFullError(round(CLEANING_S), f"{MAX_RESULTS} results are kept; delete jobs that you fetched")
        job = secrets.token_hex(16)
        evaluation = self._queue.submit(request)
        try:
            write_atomic(self._path(job, REQUEST), request.model_dump_json())
        except OSError as error:
            self._queue.withdraw(evaluation)
            raise InfrastructureError(os_error_text(error, self._folder)) from error
        self._follow(job, request.repeated_fields(), evaluation)
        return job

    def _resume(self, job: str, request: EvaluateRequest) -> None:
        """A request that was right when it was accepted may be wrong now: the problem may be gone.

        Raises InfrastructureError where this machine cannot queue it now, which says nothing about the job: it is
        queued when it is asked for, or by the next server.
        """
        repeated = request.repeated_fields()
        try:
            evaluation = self._queue.submit(request, bounded=False)
        except InfrastructureError:
            self._leave_for_later(job)
            raise
        except SlopCodeError as error:
            outcome = EvaluationOutcome("infrastructure_failure", reason=str(error))
            self._store(job, EvaluationAnswer.of(repeated, outcome))
        else:
            self._follow(job, repeated, evaluation)

    def _follow(self, job: str, repeated: dict[str, str], evaluation: QueuedEvaluation) -> None:
        with self._lock:
            self._evaluations[job] = evaluation
        evaluation.ended.add_done_callback(partial(self._finish, job, repeated))

    def _finish(self, job: str, repeated: dict[str, str], ended: Future[EvaluationOutcome]) -> None:
        """A job that the shutdown cancelled stays without a result: the next server resumes it."""
        outcome = ended.result()
        with self._lock:
            wanted = self._evaluations.pop(job, None) is not None
            resumed = self._closing and outcome.cancelled
        if wanted and not resumed:
            self._store(job, EvaluationAnswer.of(repeated, outcome))

    def _store(self, job: str, answer: EvaluationAnswer) -> None:
        """A result that cannot be written now is written when it is asked for; after a kill the job is resumed."""
        try:
            write_atomic(self._path(job, RESULT), answer.model_dump_json())
        except OSError:
            self._unwritten[job] = answer
            return
        self._count_result(1)
        try:
            self._path(job, REQUEST).unlink()
        except FileNotFoundError:  # cancelled meanwhile
            self._remove_result(job)

    def _count_result(self, change: int) -> None:
        with self._lock:
            self._results += change

    def _remove_result(self, job: str) -> None:
        """Whoever removes the file counts it; a job may end and be cancelled at the same time."""
        with contextlib.suppress(FileNotFoundError):
            self._path(job, RESULT).unlink()
            self._count_result(-1)

    def get(self, job: str) -> JobAnswer | None:
        """None for an unknown id."""
        if not self._known(job):
            return None
        self._queue_again(job)
        with self._lock:
            evaluation = self._evaluations.get(job)
        if evaluation is not None and not evaluation.ended.done():
            return JobAnswer(id=job, state="running" if evaluation.running else "queued")
        if (answer := self._unwritten.pop(job, None)) is not None:
            self._store(job, answer)
            return JobAnswer(id=job, state="finished", result=answer)
        try:
            answer = EvaluationAnswer.model_validate_json(read_bounded(self._path(job, RESULT), MAX_RECORD_BYTES))
        except FileNotFoundError:  # it is being written
            return JobAnswer(id=job, state="running")
        except ValueError as error:
            raise InfrastructureError(f"the stored result of job {job} is damaged; delete the job") from error
        except OSError as error:
            raise InfrastructureError(f"{os_error_text(error, self._folder)}; ask again") from error
        return JobAnswer(id=job, state="finished", result=answer)

    def _queue_again(self, job: str) -> None:
        """Does nothing for a job that is queued or has ended."""
        with self._lock:
            if job not in self._unqueued:
                return
        try:
            request = self._request(job)
        except ValueError as error:
            raise InfrastructureError(f"the stored request of job {job} is damaged; delete the job") from error
        with self._lock:  # another thread may have been quicker
            unqueued = job in self._unqueued
            self._unqueued.discard(job)
        if unqueued:
            self._resume(job, request)

    def cancel(self, job: str) -> bool:
        """Cancel it and forget it, also where it has a result. False for an unknown id."""
        if not self._known(job):
            return False
        with self._lock:
            evaluation = self._evaluations.pop(job, None)
            self._unwritten.pop(job, None)
            self._unqueued.discard(job)
        if evaluation is not None:
            self._queue.withdraw(evaluation)
        self._path(job, REQUEST).unlink(missing_ok=True)
        self._remove_result(job)
        return True

    def _known(self, job: str) -> bool:
        return bool(_ID.fullmatch(job)) and any(self._path(job, end).exists() for end in (REQUEST, RESULT))

    def _remove_old(self) -> None:
        if time.monotonic() - self._cleaned < CLEANING_S:
            return
        self._cleaned = time.monotonic()
        kept = 0
        for path in [self._path(job, RESULT) for job in self._ids(RESULT)]:
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < time.time() - KEPT_S:
                    path.unlink()
                else:
                    kept += 1
        with self._lock:
            self._results = kept

    def _ids(self, end: str) -> Iterator[str]:
        files = (path for path in sorted(self._folder.glob(f"*{end}")) if path.is_file())
        return (name for path in files if _ID.fullmatch(name := path.name.removesuffix(end)))

    def _path(self, job: str, end: str) -> Path:
        return self._folder / f"{job}{end}"

    def closing(self) -> None:
        """From now on, a cancelled job stays without a result, so that it is resumed."""
        with self._lock:
            self._closing = True

    def close(self) -> None:
        self._held.close()
