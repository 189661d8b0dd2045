"""Executor that runs jobs in threads of this process. The threads only wait: processes do the work."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import ConfigError, InfrastructureError, UsageError
from slop_code.evaluation.context import tools_for
from slop_code.evaluation.problem.dependency_lock import read_test_lock
from slop_code.execution.processors import available_cpus
from slop_code.execution.sandbox import sandbox_for
from slop_code.execution.templates import TemplatePool
from slop_code.execution.worker_threads import WorkerThreads
from slop_code.runs.executors.worker import run_job

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.cache import Cache
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.runs.jobs.job_records import JobRequest, JobResult, Submission


class ThreadExecutor:
    remote = False

    def __init__(self, slots: int | None, address: str | None, progress: ProgressCallback, cache: Cache) -> None:
        if address is not None:
            raise UsageError(f"address {address}: the executor threads uses this machine alone; a cluster needs ray")
        self.slots = available_cpus() if slots is None else slots
        self._cache, self._progress = cache, progress
        self._threads = WorkerThreads(self.slots, "job")
        self._closing = contextlib.ExitStack()
        self._templates = self._closing.enter_context(TemplatePool())
        self._results: Path | None = None
        self._lock = threading.Lock()

    def prepare(self, wanted: Sequence[Submission]) -> None:
        """Fetch images and test tools, and find Pythons, once; where nothing can be evaluated, this raises at once."""
        pairs = [(each.environment.requiring(each.checkpoint.requires_python), each.problem) for each in wanted]
        different = {(spec.digest(), *_tools_key(problem)): (spec, problem) for spec, problem in pairs}
        failures = []
        for spec, problem in different.values():
            try:
                sandbox = sandbox_for(spec, self._cache, self._progress)
                sandbox.subject_python()
                tools_for(sandbox, problem, read_test_lock(problem))
            except (InfrastructureError, ConfigError, OSError) as error:
                failures.append(error)
        if failures and len(failures) == len(different):
            raise failures[0]

    def submit(self, request: JobRequest) -> Future[JobResult]:
        return self._threads.submit(run_job, request, self._cache, self._new_folder, self._progress, self._templates)

    def _new_folder(self) -> Path:
        """A folder for a result, in a session folder of the cache, which is removed even after a kill."""
        with self._lock:
            if self._results is None:
                self._results = self._closing.enter_context(self._cache.session_folder())
        return Path(tempfile.mkdtemp(prefix="result", dir=self._results))

    def stop(self, future: Future[JobResult]) -> None:
        self._threads.cancel(future)  # a queued job is started and ends at once: it would have no result otherwise

    def close(self) -> None:
        self._threads.close()
        self._closing.close()


def _tools_key(problem: ProblemConfig) -> tuple[tuple[str, ...], Path | None]:
    """Problems with equal keys share their test tools; each may have a lock of its own."""
    return tuple(problem.test_dependencies), problem.path if problem.test_dependencies else None
