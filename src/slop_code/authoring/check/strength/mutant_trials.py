"""Evaluation of mutants, and the tests that catch them."""

from __future__ import annotations

import itertools
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.authoring.check.strength.python_edits import compiles
from slop_code.authoring.check.strength.python_solution import copy_solution, overwrite
from slop_code.authoring.check.workbench import EvaluationRequest
from slop_code.errors import InfrastructureError
from slop_code.evaluation.context import timeout_per_test
from slop_code.evaluation.evidence import NEVER_RAN
from slop_code.execution.progress_events import ProgressEvent, ProgressKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slop_code.authoring.check.strength.mutant import Mutant
    from slop_code.authoring.check.workbench import Workbench
    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.execution.environment import EnvironmentSpec

BATCH_PER_JOB = 4
"""Mutants on disk for each job."""

MIN_TEST_SECONDS, MIN_SESSION_SECONDS = 5.0, 20.0
MAX_UNBUILT = 20
"""Mutants without a result before the step gives up, unless twice as many were asked for or evaluated."""

ENDED_BY_PROGRAM = frozenset({NEVER_RAN, 2, 3, 4, 5})
"""The session timeout, and exit codes of a pytest that was ended from inside; only where the boxes were open."""


@dataclass(frozen=True, slots=True)
class TriedMutant:
    mutant: Mutant
    failed: frozenset[str]
    """Tests, as `file::id`, that pass with the reference and not with the mutant."""

    ended: str | None = None
    """The reason where the mutant ran too long or ended pytest; `failed` is empty then, as some tests never ran."""

    @property
    def caught(self) -> bool:
        return bool(self.failed) or self.ended is not None


def deciding_tests(reference: CorrectnessResults) -> list[TestResult]:
    """Tests that can catch a mutant: they pass with the reference and are not in quarantine."""
    return [test for test in reference.tests if test.status == "passed" and not test.quarantined]


def with_short_timeouts(
    environment: EnvironmentSpec, checkpoint: CheckpointConfig, reference: CorrectnessResults
) -> EnvironmentSpec:
    """Timeouts of several times the reference's needs, so that an endless loop ends soon.

    They are rounded up to few values, since the cache is keyed by them.
    """
    timeouts = environment.timeouts
    longest = max((test.duration_ms / 1000 for test in reference.tests), default=0.0)
    session = _doubled(MIN_SESSION_SECONDS, 5 * reference.phases.get("tests", 0.0))
    shorter = {
        "test": min(timeout_per_test(checkpoint, timeouts), _doubled(MIN_TEST_SECONDS, 10 * longest)),
        "session": min(timeouts.session or checkpoint.session_timeout or session, session),
    }
    return environment.model_copy(update={"timeouts": timeouts.model_copy(update=shorter)})


def _doubled(seconds: float, needed: float) -> float:
    while seconds < needed:
        seconds *= 2
    return seconds


def try_mutants(
    bench: Workbench, checkpoint: CheckpointConfig, mutants: Iterable[Mutant], limit: int | None, end: float
) -> tuple[list[TriedMutant], int]:
    """At most `limit` mutants, but at least 1, until `end` on the monotonic clock; and the number without a result."""
    reference = bench.reference(checkpoint)
    quick, solution = with_short_timeouts(bench.environment, checkpoint, reference), bench.solution(checkpoint)
    source, results, unbuilt = _each_once(mutants), list[TriedMutant](), list[str]()
    size = BATCH_PER_JOB * bench.effort.jobs if limit is not None else bench.effort.jobs
    while should_continue(len(results), len(unbuilt), limit, late=time.monotonic() >= end):
        batch = list(itertools.islice(source, size if limit is None else min(size, limit - len(results))))
        if not batch:
            break
        event = ProgressEvent(
            ProgressKind.EVALUATE_MUTANTS, checkpoint=checkpoint.name, count=len(results), total=limit or 0
        )
        with tempfile.TemporaryDirectory(prefix="slop-code-mutants-") as scratch:
            folders = [
                _written(mutant, solution, Path(scratch) / f"mutant{index}") for index, mutant in enumerate(batch)
            ]
            outcomes = bench.evaluate_all(
                [EvaluationRequest(checkpoint, folder, environment=quick, repeat_starved=False) for folder in folders],
                event,
            )
        for mutant, outcome in zip(batch, outcomes, strict=True):
            result = mutant_result(mutant, reference, outcome)
            if isinstance(result, TriedMutant):
                results.append(result)
            else:
                unbuilt.append(result)
    if unbuilt and not results:
        raise InfrastructureError(f"no mutant of the reference of {checkpoint.name} could be tried: {unbuilt[-1]}")
    return results, len(unbuilt)


def should_continue(tried: int, unbuilt: int, limit: int | None, *, late: bool) -> bool:
    if tried and late:
        return False
    return (limit is None or tried < limit) and unbuilt <= max(MAX_UNBUILT, 2 * (limit or tried))


def mutant_result(
    mutant: Mutant, reference: CorrectnessResults, outcome: CorrectnessResults | InfrastructureError
) -> TriedMutant | str:
    """The reason, as text, where there is no verdict and the mutant is not the cause."""
    if isinstance(outcome, InfrastructureError):
        return str(outcome)
    if outcome.setup_failure is not None:
        return outcome.setup_failure
    reason = outcome.infrastructure_failure_reason
    if reason is None:
        return TriedMutant(mutant, failed(reference, outcome))
    ended = outcome.isolation and outcome.pytest_exit_code in ENDED_BY_PROGRAM
    return TriedMutant(mutant, frozenset(), reason) if ended else reason


def failed(reference: CorrectnessResults, results: CorrectnessResults) -> frozenset[str]:
    deciding = {test.nodeid for test in deciding_tests(reference)}
    return frozenset(test.nodeid for test in results.tests if test.nodeid in deciding and test.status != "passed")


def _each_once(mutants: Iterable[Mutant]) -> Iterator[Mutant]:
    seen = set()
    for mutant in mutants:
        text = (mutant.file, mutant.mutated)
        if text not in seen and mutant.mutated != mutant.text and compiles(mutant.mutated):
            seen.add(text)
            yield mutant


def _written(mutant: Mutant, solution: Path, folder: Path) -> Path:
    copy_solution(solution, folder)
    overwrite(folder / mutant.file, mutant.mutated)
    return folder
