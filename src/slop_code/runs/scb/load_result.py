"""Loader of stored results of either maker: slop-code or the SlopCodeBench runner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slop_code._io import read_or_none
from slop_code.errors import ResultError
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.reports.raw_test import ReportError, load_object
from slop_code.evaluation.result_files.stored_record import SIZE_LIMIT
from slop_code.runs.scb.scb_evaluation import EVIDENCE, NotScbError, ScbResult, scb_result

if TYPE_CHECKING:
    from pathlib import Path


def load_result(path: Path) -> CorrectnessResults:
    """A result of slop-code, as strict as `CorrectnessResults.load`, or one of the SlopCodeBench runner."""
    try:
        return CorrectnessResults.load(path)
    except ResultError:
        result = read_scb_result(path)
        if result is None:
            raise
        return result.results


def read_scb_result(path: Path) -> ScbResult | None:
    """The result, or None if the file is not of the SlopCodeBench runner.

    Raises ResultError if the file only resembles one of that runner.
    """
    document = _document(path)
    if not isinstance(document.get("tests"), dict):
        return None
    try:
        return scb_result(document, path.parent)
    except NotScbError as error:
        fact = f"a result neither of slop-code nor of the SlopCodeBench runner: {error}"
        raise ResultError(f"{path}: {fact}; evaluate the snapshot again", fact) from error


def is_scb(results: CorrectnessResults) -> bool:
    """Whether the SlopCodeBench runner made it: its provenance and its isolation are not recorded."""
    return results.evidence == EVIDENCE


def _document(path: Path) -> dict[str, Any]:
    try:
        return load_object(read_or_none(path, SIZE_LIMIT) or b"")
    except ReportError:
        return {}
