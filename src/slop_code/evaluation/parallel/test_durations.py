"""Durations of tests in earlier evaluations, by which the tests of a checkpoint are balanced between pairs.

They decide how long an evaluation takes, never its verdict.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from slop_code._io import read_bounded, write_atomic
from slop_code.execution.cache import DURATIONS

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.execution.cache import Cache

MAX_SIZE = 4 << 20
MAX_FILES = 1000
MAX_SECONDS = 1e9


def load_durations(cache: Cache, tests_digest: str) -> dict[str, float]:
    """Seconds by node id; empty where nothing is known, or the file is damaged."""
    try:
        document = json.loads(read_bounded(_path(cache, tests_digest), MAX_SIZE))
    except (OSError, ValueError, RecursionError):
        return {}
    items = document.items() if isinstance(document, dict) else ()
    return {name: float(seconds) for name, seconds in items if _is_duration(seconds)}


def store_durations(cache: Cache, results: CorrectnessResults) -> None:
    """Stores the mean of earlier durations and these, if every test ran. Errors of the cache are ignored."""
    digest = results.provenance.digests.tests
    if digest is None or results.infrastructure_failure or results.deselected or results.setup_failure is not None:
        return
    earlier = load_durations(cache, digest)
    seconds = {test.nodeid: test.duration_ms / 1000 for test in results.tests}
    means = {name: round((earlier.get(name, now) + now) / 2, 4) for name, now in seconds.items()}
    text = json.dumps(means)
    if len(text) > MAX_SIZE:
        return
    with contextlib.suppress(OSError):
        write_atomic(_path(cache, digest), text)
        if not earlier:
            _remove_oldest(cache.root / DURATIONS)


def _path(cache: Cache, tests_digest: str) -> Path:
    return cache.root / DURATIONS / tests_digest


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_SECONDS


def _remove_oldest(folder: Path) -> None:
    """Other evaluators may do the same at the same time."""
    files = [path for path in folder.iterdir() if not path.name.startswith(".")]
    if len(files) <= MAX_FILES:
        return
    ages = []
    for path in files:
        with contextlib.suppress(OSError):
            ages.append((path.stat().st_mtime, path))
    for _, path in sorted(ages)[: len(files) - MAX_FILES]:
        path.unlink(missing_ok=True)
