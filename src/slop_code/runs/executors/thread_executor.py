"""Jobs in threads of this process: their work is done by processes, so that threads only wait."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.pytest_runner import tools_for
from slop_code.execution.cancellation import CancelToken, cancel_scope
from slop_code.execution.concurrency import available_cpus
from slop_code.execution.sandbox import sandbox_for
from slop_code.runs.worker import run_job

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from slop_code.execution.cache import Cache
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.runs.job_records import JobRequest, JobResult, Submission


class ThreadExecutor:
    def __init__(self, slots: int | None, address: str | None, progress: ProgressCallback, cache: Cache) -> None:
        if address is not None:
            raise UsageError(f"address {address}: the executor threads uses this machine alone; a cluster needs ray")
        self.slots = available_cpus() if slots is None else slots
        self._cache, self._progress = cache, progress
        self._pool = ThreadPoolExecutor(self.slots, thread_name_prefix="job")
        self._stops: dict[Future[JobResult], CancelToken] = {}

    def prepare(self, wanted: Sequence[Submission]) -> None:
        """A machine that cannot evaluate anything says so once; images and test tools are fetched once."""
        different = {
            (one.environment.digest(), tuple(one.problem.test_dependencies)): (one.environment, one.problem)
            for one in wanted
        }
        failures = []
        for environment, problem in different.values():
            try:
                tools_for(sandbox_for(environment, self._cache, self._progress), problem, self._cache, self._progress)
            except (InfrastructureError, OSError) as error:
                failures.append(error)
        if failures and len(failures) == len(different):
            raise failures[0]

    def submit(self, work: JobRequest) -> Future[JobResult]:
        token = CancelToken()
        try:
            future = self._pool.submit(self._perform, work, token)
        except BaseException:
            token.cancel()  # the pool may have taken it and found no thread: then it ends where it begins
            token.close()
            raise
        self._stops[future] = token
        future.add_done_callback(lambda ended: self._stops.pop(ended).close())
        return future

    def _perform(self, work: JobRequest, token: CancelToken) -> JobResult:
        with cancel_scope(token):
            return run_job(work, self._cache, self._progress)

    def stop(self, future: Future[JobResult]) -> None:
        """One that waits for a thread comes to its end there: a cancelled future would have no outcome."""
        if (token := self._stops.get(future)) is not None:
            token.cancel()

    def close(self) -> None:
        self._pool.shutdown()
