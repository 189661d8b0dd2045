"""Results in the formats of others; another package can bring one more."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, BinaryIO, Protocol

from slop_code.errors import UsageError
from slop_code.execution.entry_points import plugin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slop_code.evaluation.policy import Policy
    from slop_code.runs.read_results import StoredCheckpoint

GROUP = "slop_code.exporters"
_HERE = "slop_code.reporting.exporters"
BUILT_IN = {name: f"{_HERE}.{name}_exporter:export" for name in ("junit", "ctrf", "csv", "parquet", "markdown")}


class Exporter(Protocol):
    """A function. It writes as it reads: of all entries, one result is in memory at a time."""

    def __call__(self, entries: Iterable[StoredCheckpoint], out: BinaryIO, policy: Policy, /) -> None:
        """Entries come by run, problem and checkpoint. `out` may be a pipe, or a terminal: then no binary data."""


def exporter(name: str) -> Exporter:
    """Our own, else one that another package brings under the entry point `slop_code.exporters`."""
    found: Exporter | None = plugin(GROUP, name, BUILT_IN)
    if found is not None:
        return found
    names = dict.fromkeys([*BUILT_IN, *sorted(entry_points(group=GROUP).names)])
    raise UsageError(f"no format {name!r} in this installation; there are {', '.join(names)}")
