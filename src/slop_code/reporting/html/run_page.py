"""Report of evaluated runs as an HTML file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slop_code._io import open_regular, write_atomic
from slop_code._version import __version__
from slop_code.errors import UsageError
from slop_code.evaluation.policy import PassPolicy, RatePolicy
from slop_code.reporting.html.page import MARKER, render_page
from slop_code.reporting.html.run_data import report_data
from slop_code.runs.folders.result_folders import check_output

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slop_code.evaluation.policy import Policy
    from slop_code.runs.read_results import RunResults

SCRIPTS = (
    "chart.js",
    "filter.js",
    "agents.js",
    "overview.js",
    "grid.js",
    "timeline.js",
    "diff.js",
    "expected.js",
    "message.js",
    "code_diff.js",
    "detail.js",
    "code_figures.js",
    "charts.js",
    "report.js",
)


def write_report(runs: Sequence[RunResults], policies: Sequence[Policy], path: Path) -> int:
    """Size of the page in bytes. The first policy is selected at first; the named policies are always there."""
    check_page(path)
    data, parts = report_data(runs, [*dict.fromkeys([*(policies or [PassPolicy.ALL_CASES]), *PassPolicy, *RatePolicy])])
    title = f"Report: {runs[0].name}" if len(runs) == 1 else f"Report: {len(runs)} runs"
    page = render_page(title, scripts=SCRIPTS, data={**data, "slop_code": __version__}, parts=parts).encode("utf-8")
    write_atomic(path, page)
    return len(page)


def check_page(path: Path) -> None:
    """Raises for a path that cannot be written, or that is not a page of slop-code."""
    check_output(path)
    if os.path.lexists(path) and not is_own_page(path):
        raise UsageError(f"{path}: exists, and is no page that slop-code wrote; remove it or give another with -o")


def is_own_page(path: Path) -> bool:
    try:
        with open_regular(path) as stream:
            return MARKER.encode() in stream.read(200)
    except OSError:
        return False
