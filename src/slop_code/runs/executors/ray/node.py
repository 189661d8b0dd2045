"""What runs on a node of a cluster: content becomes files there, and a job is done on them."""

from __future__ import annotations

import contextlib
import platform
import signal
import socket
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from slop_code._version import __version__
from slop_code.errors import InfrastructureError
from slop_code.evaluation.provenance import evaluation_version
from slop_code.execution.cache import Cache
from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope
from slop_code.runs.executors.ray.shipping import arrived, unpack
from slop_code.runs.executors.worker import run_job
from slop_code.runs.job_records import JobResult

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.runs.job_records import JobRequest

LISTEN_S = 0.2
"""Ray tells a task to stop by an exception that comes only between two steps of its Python code."""


@dataclass(frozen=True, slots=True)
class Versions:
    """What has to be the same on every node, as verdicts may differ with it."""

    slop_code: str
    evaluation: str
    python: str

    def difference(self, expected: Versions) -> str | None:
        """The first one, in words."""
        wanted = asdict(expected)
        for name, found in asdict(self).items():
            if found != wanted[name]:
                return f"it has {name.replace('_', '-')} {found}, expected {wanted[name]}"
        return None


def versions_here() -> Versions:
    return Versions(__version__, evaluation_version(), f"{platform.python_version()} on {platform.machine()}")


@dataclass(frozen=True, slots=True)
class Shipment:
    digest: str
    reference: Any
    """To the packed tree in the object store; inside this record, so that Ray brings it only when it is asked for."""


def run_on_node(work: JobRequest, problem: Shipment, submission: Shipment, expected: Versions) -> JobResult:
    """The job itself runs beside, so that this thread can hear that it is to be stopped."""
    with contextlib.suppress(ValueError):  # not in the main thread: then nobody can tell it
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a Ray that was started by a script may ignore it
    with contextlib.closing(CancelToken()) as token, ThreadPoolExecutor(1) as pool:
        job = pool.submit(_job, work, problem, submission, expected, token)
        while True:
            try:
                while not job.done():
                    wait([job], LISTEN_S)
                return job.result()
            except KeyboardInterrupt:
                token.cancel()


def _job(
    work: JobRequest, problem: Shipment, submission: Shipment, expected: Versions, token: CancelToken
) -> JobResult:
    import ray

    def failed(reason: str) -> JobResult:
        return JobResult.failed(f"node {socket.gethostname()}: {reason}", work.attempts)

    difference = versions_here().difference(expected)
    if difference:
        return failed(difference)
    try:
        cache = Cache.default()
        with cancel_scope(token), cache.shared_lock(), cache.session_folder() as folder:
            place = arrived(cache, problem.digest, lambda: ray.get(problem.reference))
            unpack(ray.get(submission.reference), folder / "submission", submission.digest)
            local = replace(work, problem=work.problem.at(place), submission=folder / "submission")
            return replace(run_job(local, cache, lambda: _make(folder / "result")), folder=None)
    except EvaluationCancelledError as error:
        return JobResult.failed(str(error), work.attempts, final=True)
    except InfrastructureError as error:
        return failed(str(error))
    except OSError as error:
        return failed(f"{error.filename or 'the cache'}: {error.strerror}")


def _make(folder: Path) -> Path:
    folder.mkdir()
    return folder
