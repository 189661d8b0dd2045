"""Executor that runs jobs on the nodes of a Ray cluster, without a shared file system."""

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
from slop_code.execution.submission import read_tree
from slop_code.runs.executors.ray.cluster import check_nodes, connect, live_nodes, short_message
from slop_code.runs.executors.ray.node import ShippedTree, local_versions, run_on_node
from slop_code.runs.executors.ray.shipping import pack, pack_problem
from slop_code.runs.jobs.job_records import JobResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.cache import Cache
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.runs.jobs.job_records import JobRequest, Submission

GRACE_S = 20.0
"""Time for a cancelled job to end; then its worker is killed."""


class RayExecutor:
    remote = True

    def __init__(self, slots: int | None, address: str | None, progress: ProgressCallback, cache: Cache) -> None:
        """`cache` is not used: each node has its own."""
        del cache
        self._ray, self._owns_connection = connect(address or os.environ.get("RAY_ADDRESS"))
        try:
            self._versions = local_versions()
            check_nodes(self._ray, self._versions)
        except BaseException:
            self.close()
            raise
        nodes = live_nodes(self._ray)
        self.slots = int(sum(node.cpus for node in nodes)) if slots is None else slots
        progress(ProgressEvent(ProgressKind.CONNECT_TO_CLUSTER, "Ray", count=len(nodes), total=self.slots))
        self._run = self._ray.remote(run_on_node)
        self._lock = threading.Lock()
        self._problems: dict[Path, ShippedTree] = {}
        self._submissions: dict[str, ShippedTree] = {}
        self._reference_counts: Counter[str] = Counter()
        self._running: dict[Future[JobResult], Any] = {}
        self._stopped: WeakSet[Future[JobResult]] = WeakSet()

    def prepare(self, wanted: Sequence[Submission]) -> None:
        """Does nothing: each node prepares with its first job."""

    def submit(self, request: JobRequest) -> Future[JobResult]:
        future: Future[JobResult] = Future()
        future.set_running_or_notify_cancel()
        try:
            self._send(request, future)
        except UsageError as error:
            future.set_result(JobResult.failed(str(error), request.attempts, final=True))
        except Exception as error:  # noqa: BLE001  (the future raises it, and the other jobs go on)
            future.set_exception(InfrastructureError(short_message(error)))
        return future

    def _send(self, request: JobRequest, future: Future[JobResult]) -> None:
        problem, submission = self._problem(request.problem), self._submission(request)
        try:
            largest = max((int(node.cpus) for node in live_nodes(self._ray)), default=1)
            reference = self._run.options(
                num_cpus=min(request.weight, largest),  # a task that is too large for every node would wait for ever
                max_retries=0,  # the scheduler retries, and records the reason
                name=f"slop-code {request.problem.name} {request.checkpoint}",
            ).remote(request_for_node(request), problem, submission, self._versions)
        except BaseException:
            self._forget(request.digest)
            raise
        self._running[future] = reference
        reference.future().add_done_callback(lambda ended: self._settle(future, request, ended))

    def _problem(self, problem: ProblemConfig) -> ShippedTree:
        """The problem, packed once for all jobs, so that they have the same tests."""
        if problem.path not in self._problems:
            digest, blocks = pack_problem(problem)
            self._problems[problem.path] = ShippedTree(digest, list(map(self._ray.put, blocks)))
        return self._problems[problem.path]

    def _submission(self, request: JobRequest) -> ShippedTree:
        """The submission, in the object store while a job needs it."""
        with self._lock:
            if request.digest not in self._submissions:
                self._submissions[request.digest] = self._ship(request)
            self._reference_counts[request.digest] += 1
            return self._submissions[request.digest]

    def _ship(self, request: JobRequest) -> ShippedTree:
        """The node compares the digest, unless the tree is beyond the limits."""
        tree = read_tree(request.submission)
        blocks = pack(request.submission) if tree.over_limit is None else ()
        over_limit = tree.over_limit if tree.digest == request.digest else None
        return ShippedTree(request.digest, list(map(self._ray.put, blocks)), over_limit)

    def _forget(self, digest: str) -> None:
        with self._lock:
            self._reference_counts[digest] -= 1
            if not self._reference_counts[digest]:
                del self._reference_counts[digest], self._submissions[digest]

    def _settle(self, future: Future[JobResult], request: JobRequest, ended: Future[JobResult]) -> None:
        """Give the future a result or an error, whatever happens here."""
        try:
            self._running.pop(future)
            self._forget(request.digest)
            done = ended.result()
        except BaseException as error:  # noqa: BLE001  (a cancelled task raises a BaseException)
            if future in self._stopped:
                future.set_result(JobResult.failed(str(EvaluationCancelledError()), request.attempts, final=True))
            else:
                future.set_exception(InfrastructureError(short_message(error)))
        else:
            future.set_result(done)

    def stop(self, future: Future[JobResult]) -> None:
        """The worker cleans up. A worker that does not is killed, and the next job there removes what it left."""
        reference = self._running.get(future)
        if reference is None:
            return
        self._stopped.add(future)
        self._ray.cancel(reference)
        timer = threading.Timer(GRACE_S, lambda: None if future.done() else self._ray.cancel(reference, force=True))
        timer.daemon = True
        timer.start()

    def close(self) -> None:
        """A connection that the program made itself stays open."""
        if self._owns_connection:
            self._ray.shutdown()


def request_for_node(request: JobRequest) -> JobRequest:
    """On a node, these paths may lead to these very files, so the submission must not see them."""
    hidden = tuple(path.absolute() for path in (request.problem.path, *request.hidden))
    return replace(request, submission=Path(), hidden=hidden)
