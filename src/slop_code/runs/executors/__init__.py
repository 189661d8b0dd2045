"""Where jobs run: threads of this process, or a cluster."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol

from slop_code.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from slop_code.execution.boxes import Progress
    from slop_code.execution.cache import Cache
    from slop_code.runs.records import Done, Submission, Work

BUILT_IN = {
    "threads": "slop_code.runs.executors.threads:Threads",
    "ray": "slop_code.runs.executors.ray:Ray",
}


class Executor(Protocol):
    """Made for one run, closed at its end."""

    slots: int
    """How much weight may run at a time; whoever submits keeps to it."""

    def __init__(self, slots: int | None, address: str | None, progress: Progress, cache: Cache) -> None:
        """`slots`: None for as many as there are processors. `cache`: this machine's."""

    def prepare(self, wanted: Sequence[Submission]) -> None:
        """Before the first job; raises where nothing of all that is wanted could be evaluated."""

    def submit(self, work: Work) -> Future[Done]: ...

    def stop(self, future: Future[Done]) -> None:
        """End this one now and clean up after it; its future still comes to an end."""

    def close(self) -> None:
        """After every future has come to its end."""


def executor_class(name: str) -> type[Executor]:
    """Our own, else one that another package brings under the entry point `slop_code.executors`."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        found: type[Executor] = getattr(importlib.import_module(module), attribute)
        return found
    from importlib.metadata import entry_points

    for entry in entry_points(group="slop_code.executors", name=name):
        loaded: type[Executor] = entry.load()
        return loaded
    raise UsageError(f"no executor {name!r} in this installation; there are {', '.join(BUILT_IN)}")
