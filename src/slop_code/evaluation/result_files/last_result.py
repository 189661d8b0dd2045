"""The last result of an evaluation without an output folder, in the cache, which has only one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.report import RESULT_FILE, CorrectnessResults
from slop_code.evaluation.result_files.origin import keep_origin, stored_origin
from slop_code.execution.cache import Cache, file_lock, remove_tree
from slop_code.execution.cache_pruning import LAST

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.pytest_runner import PytestRunner


@dataclass(frozen=True, slots=True)
class LastResult:
    folder: Path
    results: CorrectnessResults
    written: str
    """Date and time."""

    snapshot: str | None
    """Its path, or None if it is not known."""


def keep_last_result(results: CorrectnessResults, runner: PytestRunner, environment: str | None) -> bool:
    """Replaces the result that was kept before, with its origin; of two at the same time, the later one stays.

    A link in its place is removed, not followed. False where the cache cannot be written: the evaluation is complete
    without it.
    """
    try:
        cache = Cache.default()
        with file_lock(cache.root / f".{LAST}.lock"):
            remove_tree(cache.root / LAST)  # first: an older one must not pass for this one
            with cache.session_folder() as session:
                new = session / LAST
                results.write(new / RESULT_FILE)
                keep_origin(new, runner.problem, environment, runner.submission_path)
                new.rename(cache.root / LAST)
    except (InfrastructureError, OSError):
        return False
    return True


def last_result() -> LastResult:
    folder = Cache.default().root / LAST
    try:
        changed = (folder / RESULT_FILE).stat().st_mtime
    except OSError as error:
        raise UsageError(
            "no result is kept yet; evaluate a snapshot with slop-code eval-snapshot without -o, or give the path of a "
            "result, such as that of -o, or RUN_DIR/problem/checkpoint"
        ) from error
    results = CorrectnessResults.load(folder / RESULT_FILE)
    return LastResult(folder, results, date_text(changed), stored_origin(folder).snapshot)


def date_text(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds).isoformat(" ", "seconds")
    except (OverflowError, OSError, ValueError):  # beyond the year 9999
        return "an unknown date"
