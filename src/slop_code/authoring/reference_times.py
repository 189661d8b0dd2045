"""How long the tests took with the reference, the last time it was evaluated on this machine."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code._io import digest_of
from slop_code.evaluation.staging import Contents, tests_digest
from slop_code.execution.submission import open_submission, tree_digest
from slop_code.runs.result_cache import ResultCache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.execution.cache import Cache
    from slop_code.execution.environment import EnvironmentSpec


@dataclass(frozen=True, slots=True)
class ReferenceTimes:
    seconds: float
    """For all tests together, with what it takes to start and end them."""

    tests: Mapping[str, float]
    """Seconds for each."""

    def slowest(self, count: int) -> list[tuple[str, float]]:
        return sorted(self.tests.items(), key=lambda item: (-item[1], item[0]))[:count]


def remember(cache: Cache, results: CorrectnessResults) -> None:
    """Whatever the tests said; but all of them have to have run."""
    if results.infrastructure_failure or results.deselected:
        return
    digests = results.provenance.digests
    parts = [digests.submission, digests.tests, digests.config, digests.environment]
    tests = {test.nodeid: test.duration_ms / 1000 for test in results.tests}
    text = json.dumps({"seconds": results.phases.get("tests", results.duration), "tests": tests})
    ResultCache(cache).put(_key(parts), text.encode("utf-8", "surrogateescape"))


def recall(
    cache: Cache, problem: ProblemConfig, checkpoint: CheckpointConfig, spec: EnvironmentSpec, solution: Path
) -> ReferenceTimes | None:
    """None where it was not evaluated here since one of them changed; a ConfigError where files cannot be read."""
    tests = tests_digest(problem, checkpoint, Contents.of(problem))
    parts = [tree_digest(open_submission(solution)), tests, problem.digest(checkpoint), spec.digest()]
    kept = ResultCache(cache).get(_key(parts))
    return None if kept is None else parse(kept)


def _key(parts: Sequence[str | None]) -> str:
    return digest_of(["reference", *parts])


def parse(kept: bytes) -> ReferenceTimes | None:
    """None for anything that `remember` does not write."""
    try:
        found = json.loads(kept)
        tests = {str(name): _seconds(value) for name, value in found["tests"].items()}
        return ReferenceTimes(_seconds(found["seconds"]), tests)
    except (ValueError, TypeError, LookupError, AttributeError):
        return None


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("no time")
    return float(value)
