"""Jobs on the nodes of a Ray cluster, without a shared file system: what a job needs travels by content."""

from __future__ import annotations

import os
import threading
from collections import Counter
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from slop_code.errors import InfrastructureError, UsageError
from slop_code.execution.cancellation import EvaluationCancelledError
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.runs.executors.ray.cluster import alive, check_nodes, connect, in_short
from slop_code.runs.executors.ray.node import Shipment, run_on_node, versions_here
from slop_code.runs.executors.ray.shipping import pack, pack_problem
from slop_code.runs.job_records import JobResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.cache import Cache
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.runs.job_records import JobRequest, Submission

GRACE_S = 20.0
"""For a job that was told to stop; then its worker is ended."""


class RayExecutor:
    def __init__(self, slots: int | None, address: str | None, progress: ProgressCallback, cache: Cache) -> None:
        """`cache` stays unused: each node has its own."""
        del cache
        self._ray, self._ours = connect(address or os.environ.get("RAY_ADDRESS"))
        try:
            self._versions = versions_here()
            check_nodes(self._ray, self._versions)
        except BaseException:
            self.close()
            raise
        nodes = alive(self._ray)
        self.slots = int(sum(node.cpus for node in nodes)) if slots is None else slots
        progress(ProgressEvent(ProgressKind.CONNECT_TO_CLUSTER, "Ray", count=len(nodes), total=self.slots))
        self._run = self._ray.remote(run_on_node)
        self._lock = threading.Lock()
        self._problems: dict[Path, Shipment] = {}
        self._submissions: dict[str, Shipment] = {}
        self._users: Counter[str] = Counter()
        self._running: dict[Future[JobResult], Any] = {}
        self._stopped: WeakSet[Future[JobResult]] = WeakSet()

    def prepare(self, wanted: Sequence[Submission]) -> None:
        """Each node makes what it needs with its first job."""

    def submit(self, work: JobRequest) -> Future[JobResult]:
        future: Future[JobResult] = Future()
        future.set_running_or_notify_cancel()
        try:
            self._send(work, future)
        except UsageError as error:
            future.set_result(JobResult.failed(str(error), work.attempts, final=True))
        except Exception as error:  # noqa: BLE001  (it is the future's to raise: the other jobs go on)
            future.set_exception(InfrastructureError(in_short(error)))
        return future

    def _send(self, work: JobRequest, future: Future[JobResult]) -> None:
        problem, submission = self._problem(work.problem), self._submission(work)
        try:
            largest = max((int(node.cpus) for node in alive(self._ray)), default=1)
            reference = self._run.options(
                num_cpus=min(work.weight, largest),  # a task that fits on no node would wait for ever
                max_retries=0,  # whoever submits tries again, and writes down why
                name=f"slop-code {work.problem.name} {work.checkpoint}",
            ).remote(as_sent(work), problem, submission, self._versions)
        except BaseException:
            self._forget(work.digest)
            raise
        self._running[future] = reference
        reference.future().add_done_callback(lambda ended: self._settle(future, work, ended))

    def _problem(self, problem: ProblemConfig) -> Shipment:
        """Packed once in a run, so that all of its jobs see the same tests."""
        if problem.path not in self._problems:
            digest, packed = pack_problem(problem)
            self._problems[problem.path] = Shipment(digest, self._ray.put(packed))
        return self._problems[problem.path]

    def _submission(self, work: JobRequest) -> Shipment:
        """Held in the object store while there is a job for it."""
        with self._lock:
            if work.digest not in self._submissions:
                self._submissions[work.digest] = Shipment(work.digest, self._ray.put(pack(work.submission)))
            self._users[work.digest] += 1
            return self._submissions[work.digest]

    def _forget(self, digest: str) -> None:
        with self._lock:
            self._users[digest] -= 1
            if not self._users[digest]:
                del self._users[digest], self._submissions[digest]

    def _settle(self, future: Future[JobResult], work: JobRequest, ended: Future[JobResult]) -> None:
        """Whatever happens here, the future comes to an end."""
        try:
            self._running.pop(future)
            self._forget(work.digest)
            done = ended.result()
        except BaseException as error:  # noqa: BLE001  (a cancelled one raises no Exception)
            if future in self._stopped:
                future.set_result(JobResult.failed(str(EvaluationCancelledError()), work.attempts, final=True))
            else:
                future.set_exception(InfrastructureError(in_short(error)))
        else:
            future.set_result(done)

    def stop(self, future: Future[JobResult]) -> None:
        """Its worker cleans up after itself; one that does not is ended: the next job there reaps what it left."""
        reference = self._running.get(future)
        if reference is None:
            return
        self._stopped.add(future)
        self._ray.cancel(reference)
        _after(GRACE_S, lambda: None if future.done() else self._ray.cancel(reference, force=True))

    def close(self) -> None:
        """A connection that the program had made itself stays."""
        if self._ours:
            self._ray.shutdown()


def as_sent(work: JobRequest) -> JobRequest:
    """What lies on a node at the places of these files may be these very files."""
    hidden = tuple(path.absolute() for path in (work.problem.path, *work.hidden))
    return replace(work, submission=Path(), hidden=hidden)


def _after(seconds: float, action: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    timer.start()
