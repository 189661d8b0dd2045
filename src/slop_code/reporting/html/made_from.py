"""Provenance of a checkpoint's result for the page, as labels and values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from slop_code.reporting.html.page_texts import name_of
from slop_code.reporting.provenance_text import python_text, sandbox_text, short_digest
from slop_code.reporting.text import NOT_RECORDED
from slop_code.runs.run_layout import RESULT_FILE
from slop_code.runs.scb.load_result import is_scb

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.reporting.evaluated_problem import EvaluatedProblem


def made_from(problem: EvaluatedProblem, folder: Path) -> list[tuple[str, str]]:
    """`folder` is that of the result."""
    results = problem.results
    source, digests = results.provenance, results.provenance.digests
    version = f" {problem.version}" if problem.version else ""
    recorded = not is_scb(results)
    pairs = [
        ("evaluated", _date(folder)),
        ("problem", f"{results.problem_name}{version}"),
        ("tests digest", short_digest(digests.tests or "")),
        ("submission digest", short_digest(digests.submission or "")),
        ("slop-code", source.slop_code),
        ("pytest", source.test_dependencies.get("pytest", "")),
        ("Python", python_text(results) if recorded else ""),
        ("sandbox", sandbox_text(results) if recorded else ""),
    ]
    return [(label, name_of(value) if value else NOT_RECORDED) for label, value in pairs]


def _date(folder: Path) -> str:
    """Modification time of the result's file, as no date is stored."""
    try:
        return datetime.fromtimestamp((folder / RESULT_FILE).lstat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OSError, OverflowError, ValueError):
        return ""
