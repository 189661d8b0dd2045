"""Code that runs on a node of a Ray cluster: it unpacks problem and submission, and runs the job."""

from __future__ import annotations

import contextlib
import platform
import signal
import socket
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from slop_code._version import __version__
from slop_code.errors import ConfigError, InfrastructureError
from slop_code.evaluation.result_files.staleness import evaluation_version
from slop_code.execution.cache import Cache
from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope
from slop_code.execution.submission import SubmissionTree
from slop_code.runs.executors.ray.shipping import received_problem, unpack
from slop_code.runs.executors.worker import run_job
from slop_code.runs.jobs.job_records import JobResult
from slop_code.runs.result_cache_key import host_python_version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.runs.jobs.job_records import JobRequest

CANCEL_POLL_S = 0.2
"""Ray cancels a task by an exception, which is raised only between two steps of its Python code."""


@dataclass(frozen=True, slots=True)
class NodeVersions:
    """Versions that must be the same on every node, as verdicts may differ with them."""

    slop_code: str
    evaluation: str
    python: str

    def difference(self, expected: NodeVersions) -> str | None:
        """The first difference, as a message."""
        wanted = asdict(expected)
        for name, actual in asdict(self).items():
            if actual != wanted[name]:
                return f"it has {name.replace('_', '-')} {actual}, expected {wanted[name]}"
        return None


def local_versions() -> NodeVersions:
    return NodeVersions(__version__, evaluation_version(), f"{platform.python_version()} on {platform.machine()}")


@dataclass(frozen=True, slots=True)
class ShippedTree:
    digest: str
    blocks: Sequence[Any]
    """References to the packed tree in the object store. Inside a record, Ray fetches them only when asked for."""

    over_limit: str | None = None
    """The limit that a submission exceeds; it is not sent then."""


def run_on_node(
    request: JobRequest, problem: ShippedTree, submission: ShippedTree, expected: NodeVersions
) -> JobResult:
    """The job runs in another thread, so that this thread can receive the exception that cancels the task."""
    with contextlib.suppress(ValueError):  # not in the main thread, which gets no signals
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a Ray that a script started may ignore the signal
    with contextlib.closing(CancelToken()) as token, ThreadPoolExecutor(1) as pool:
        job = pool.submit(_job, request, problem, submission, expected, token)
        while True:
            try:
                while not job.done():
                    wait([job], CANCEL_POLL_S)
                return job.result()
            except KeyboardInterrupt:
                token.cancel()


def _job(
    request: JobRequest, problem: ShippedTree, submission: ShippedTree, expected: NodeVersions, token: CancelToken
) -> JobResult:
    def failed(reason: str) -> JobResult:
        return JobResult.failed(f"node {socket.gethostname()}: {reason}", request.attempts)

    difference = local_versions().difference(expected)
    if difference:
        return failed(difference)
    try:
        import ray

        checkpoint = request.problem.checkpoints[request.checkpoint]
        host_python_version(request.environment.requiring(checkpoint.requires_python))  # raises where there is none
        cache = Cache.default()
        with cancel_scope(token), cache.shared_lock(), cache.session_folder() as folder:
            problem_folder = received_problem(cache, problem.digest, lambda: map(ray.get, problem.blocks))
            local = replace(request, problem=request.problem.at(problem_folder), submission=folder / "submission")
            if submission.over_limit is None:
                unpack(map(ray.get, submission.blocks), local.submission, submission.digest)
            else:
                local.submission.mkdir()
                local = replace(local, unsent=SubmissionTree(submission.digest, over_limit=submission.over_limit))
            (folder / "result").mkdir()
            return replace(run_job(local, cache, lambda: folder / "result"), folder=None)
    except EvaluationCancelledError as error:
        return JobResult.failed(str(error), request.attempts, final=True)
    except (InfrastructureError, ConfigError) as error:
        return failed(str(error))
    except OSError as error:
        return failed(f"{error.filename or 'the cache'}: {error.strerror}")
