"""Durations of tests with the reference, from its last evaluation on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from slop_code._io import digest_of
from slop_code.authoring.problem_folders import SOLUTIONS
from slop_code.evaluation.problem.problem_contents import Contents, checkpoint_inputs
from slop_code.evaluation.result_files.stored_record import Stored
from slop_code.execution.submission import open_submission, tree_digest
from slop_code.runs.result_cache import ResultCache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.evaluation.context import EvaluationContext
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.execution.cache import Cache


class ReferenceTimes(Stored):
    seconds: float
    """The whole test session, with its start and end."""

    tests: dict[str, float]
    """Seconds by test."""

    def slowest(self, count: int) -> list[tuple[str, float]]:
        return sorted(self.tests.items(), key=lambda item: (-item[1], item[0]))[:count]


def store_reference_times(cache: Cache, results: CorrectnessResults) -> None:
    """Stores the durations if all tests ran, whatever their results."""
    if results.infrastructure_failure or results.deselected:
        return
    digests = results.provenance.digests
    parts = [digests.submission, digests.tests, digests.config, digests.environment]
    tests = {test.nodeid: test.duration_ms / 1000 for test in results.tests}
    times = ReferenceTimes(seconds=results.phases.get("tests", results.duration), tests=tests)
    ResultCache(cache).put(_key(parts), times.model_dump_json().encode())


def load_reference_times(context: EvaluationContext) -> ReferenceTimes | None:
    """None without an evaluation of exactly these inputs; a ConfigError where files cannot be read."""
    problem, checkpoint = context.problem, context.checkpoint
    solution = tree_digest(open_submission(problem.path / SOLUTIONS / checkpoint.name))
    tests = checkpoint_inputs(problem, checkpoint, Contents.of(problem)).tests_digest
    parts = [solution, tests, problem.digest(checkpoint), context.environment.digest()]
    kept = ResultCache(context.cache).get(_key(parts))
    return None if kept is None else parse(kept)


def _key(parts: Sequence[str | None]) -> str:
    return digest_of(["reference", *parts])


def parse(kept: bytes) -> ReferenceTimes | None:
    """None for anything that `store_reference_times` did not write."""
    try:
        return ReferenceTimes.model_validate_json(kept)
    except ValidationError:
        return None
