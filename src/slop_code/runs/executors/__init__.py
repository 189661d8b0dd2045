"""Executors of jobs: threads of this process, or a cluster (plug-in point `slop_code.executors`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from slop_code._arguments import check_type
from slop_code._suggestions import near_or_known
from slop_code.errors import UsageError
from slop_code.execution.entry_points import load_plugin, plugin_names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from slop_code.execution.cache import Cache
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.runs.jobs.job_records import JobRequest, JobResult, Submission

ENTRY_POINTS = "slop_code.executors"
THREADS = "threads"
BUILT_IN = {
    THREADS: "slop_code.runs.executors.thread_executor:ThreadExecutor",
    "ray": "slop_code.runs.executors.ray.ray_executor:RayExecutor",
}


class Executor(Protocol):
    """Created for an evaluation of runs, closed at its end."""

    remote: bool
    """Jobs run on other machines, which find the Pythons of submissions themselves. May be left out: False."""

    slots: int
    """The total weight that may run at a time; the scheduler keeps to it."""

    def __init__(self, slots: int | None, address: str | None, progress: ProgressCallback, cache: Cache) -> None:
        """`slots` is None for as many as processors. `cache` is that of this machine."""

    def prepare(self, wanted: Sequence[Submission]) -> None:
        """Called before the first job. Raises where none of the submissions could be evaluated."""

    def submit(self, request: JobRequest) -> Future[JobResult]: ...

    def stop(self, future: Future[JobResult]) -> None:
        """Cancel this job and clean up after it; its future still gets a result."""

    def close(self) -> None:
        """Called after every future has ended."""


def executor_class(name: str) -> type[Executor]:
    """A built-in executor, else that of another package, under the entry point `slop_code.executors`."""
    check_executor(name)
    executor: type[Executor] | None = load_plugin(ENTRY_POINTS, name, BUILT_IN)
    assert executor is not None
    return executor


def is_remote(name: str) -> bool:
    """Whether the machine of the evaluator does not know which Python a submission will get."""
    if name == THREADS:  # without the import of what evaluates: there may be nothing to evaluate
        return False
    return bool(getattr(executor_class(name), "remote", False))


def check_executor(name: str) -> None:
    """Raises UsageError for an unknown name, without an import of the executor."""
    check_type("executor", name, (str,), "the name of an executor")
    if name not in BUILT_IN and name not in (others := plugin_names(ENTRY_POINTS)):
        names = dict.fromkeys([*BUILT_IN, *others])
        raise UsageError(f"no executor {name!r} in this installation{near_or_known(name, names)}")
