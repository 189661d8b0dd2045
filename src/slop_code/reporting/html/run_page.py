"""Report of evaluated runs as an HTML file."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from slop_code._io import open_regular, write_atomic
from slop_code._version import __version__
from slop_code.errors import UsageError
from slop_code.evaluation.policy import NAMED_POLICIES, PassPolicy
from slop_code.quality.quality_record import CodePart
from slop_code.reporting.html.page import MARKER, render_page
from slop_code.reporting.html.run_data import report_data
from slop_code.reporting.word_meanings import page_meanings
from slop_code.runs.folders.result_folders import check_output

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slop_code.evaluation.policy import Policy
    from slop_code.runs.read_results import RunResults

SCRIPTS = (
    "chart.js", "filter.js", "agents.js", "sparkline.js", "failures.js", "matrix.js", "checkpoint_table.js",
    "made_from.js", "overview.js", "grid.js", "timeline.js", "diff.js", "expected.js", "message.js", "code_diff.js",
    "detail.js", "code_figures.js", "charts.js", "live.js", "report.js",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LiveReport:
    """A report that is written again and again while a run goes on."""

    written: float
    """Seconds since the epoch."""
    every: float
    """Seconds until the next one at the latest."""
    running: str = ""
    """Checkpoints whose tests run, with counts of tests."""


def write_report(
    runs: Sequence[RunResults], policies: Sequence[Policy], path: Path, live: LiveReport | None = None
) -> int:
    """Size of the page in bytes. The first policy is selected at first; the named policies are always there."""
    check_page(path)
    data, parts = report_data(runs, [*dict.fromkeys([*(policies or [PassPolicy.ALL_CASES]), *NAMED_POLICIES])])
    data |= {"live": asdict(live) if live else None, "meanings": page_meanings(_terms(data)), "slop_code": __version__}
    title = f"Report: {runs[0].name}" if len(runs) == 1 else f"Report: {len(runs)} runs"
    page = render_page(title, scripts=SCRIPTS, data=data, parts=parts).encode("utf-8")
    write_atomic(path, page)
    return len(page)


def _terms(data: dict[str, Any]) -> list[str]:
    """Words on this page that are explained: those of the table of agents, and of quality where it was measured."""
    checkpoints = (c for run in data["runs"] for problem in run["problems"] for c in problem["checkpoints"])
    is_measured = any(CodePart.IMPLEMENTATION in (checkpoint["code"] or {}) for checkpoint in checkpoints)
    agents = ["missing", "sample"] if data["agents"] else []
    return ["policy", *agents, *(["erosion", "verbosity"] if agents or is_measured else [])]


def check_page(path: Path, option: str = "-o") -> None:
    """Raises for a path that cannot be written, or that is not a page of slop-code. `option`: that of the path."""
    check_output(path, option)
    if os.path.lexists(path) and not is_own_page(path):
        raise UsageError(f"{path}: exists, and is no page that slop-code wrote; remove it, or use another {option}")


def is_own_page(path: Path) -> bool:
    try:
        with open_regular(path) as stream:
            return MARKER.encode() in stream.read(200)
    except OSError:
        return False
