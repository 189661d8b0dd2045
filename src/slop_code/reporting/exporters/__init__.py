"""Exporters: results in other formats. Other packages add exporters through the entry point `slop_code.exporters`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, BinaryIO, Protocol

from slop_code._suggestions import near_or_known
from slop_code.errors import UsageError
from slop_code.execution.entry_points import load_plugin, plugin_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slop_code.evaluation.policy import Policy
    from slop_code.runs.read_results import StoredCheckpoint

ENTRY_POINTS = "slop_code.exporters"
_HERE = "slop_code.reporting.exporters"
FORMATS = ("junit", "ctrf", "csv", "parquet", "markdown", "inspect")
BUILT_IN = {name: f"{_HERE}.{name}_exporter:export" for name in FORMATS}

SCB = "scb"
"""The format that is a folder, not a stream: `scb/export_folder.py`."""


class Skips(StrEnum):
    """Skipped tests in the totals of an export."""

    LEAVE_OUT = "leave-out"
    """They are in no count, as in SlopCodeBench."""
    NOT_PASSED = "not-passed"
    """They count as tests that did not pass, as in the verdicts of slop-code."""


class Exporter(Protocol):
    """A function that writes while it reads, so that one result is in memory at a time."""

    def __call__(self, entries: Iterable[StoredCheckpoint], out: BinaryIO, policy: Policy, /) -> None:
        """Entries are ordered by run, problem and checkpoint. `out` may be a pipe, or a terminal (no binary data)."""


def exporter(name: str) -> Exporter:
    """A built-in exporter, else that of another package."""
    function: Exporter | None = load_plugin(ENTRY_POINTS, name, BUILT_IN)
    if function is not None:
        return function
    names = dict.fromkeys([*BUILT_IN, SCB, *plugin_names(ENTRY_POINTS)])
    raise UsageError(f"no format {name!r} in this installation{near_or_known(name, names)}")
