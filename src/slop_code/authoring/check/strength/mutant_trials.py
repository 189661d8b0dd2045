"""Mutants in the place of the reference: what the tests make of each."""

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
from slop_code.evaluation.evidence import NEVER_RAN
from slop_code.execution.progress_events import ProgressEvent, ProgressKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slop_code.authoring.check.strength.mutant import Mutant
    from slop_code.authoring.check.workbench import Workbench
    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.report import CorrectnessResults, TestResult

WAITING = 4
"""Mutants on disk for each that is evaluated at the time."""

MIN_TEST_SECONDS, MIN_SESSION_SECONDS = 5.0, 20.0
MAX_UNBUILT = 20
"""Mutants in vain before a solution is given up, unless twice as many others were wanted or found."""

ENDED_BY_PROGRAM = frozenset({NEVER_RAN, 2, 3, 4, 5})
"""With open boxes: the session timeout, and the exit codes of a pytest that something inside it broke off."""


@dataclass(frozen=True, slots=True)
class TriedMutant:
    mutant: Mutant
    failed: frozenset[str]
    """The tests, as `file::id`, that pass with the reference and not with this."""

    ended: str | None = None
    """It ran on for too long, or broke pytest. Tests that did not come to their turn say nothing: none has failed."""

    @property
    def caught(self) -> bool:
        return bool(self.failed) or self.ended is not None


def deciding_tests(reference: CorrectnessResults) -> list[TestResult]:
    """The tests that can catch anything: they pass with the reference, and decide."""
    return [test for test in reference.tests if test.status == "passed" and not test.quarantined]


def with_short_timeouts(checkpoint: CheckpointConfig, reference: CorrectnessResults) -> CheckpointConfig:
    """The same with the time that its reference needs, many times over: an endless loop ends soon.

    In steps, so that what is kept by content is the same after every measurement.
    """
    longest = max((test.duration_ms / 1000 for test in reference.tests), default=0.0)
    session = _step(MIN_SESSION_SECONDS, 5 * reference.phases.get("tests", 0.0))
    return checkpoint.model_copy(
        update={
            "timeout": min(checkpoint.timeout, _step(MIN_TEST_SECONDS, 10 * longest)),
            "session_timeout": min(checkpoint.session_timeout or session, session),
        }
    )


def _step(least: float, needed: float) -> float:
    while least < needed:
        least *= 2
    return least


def try_mutants(
    bench: Workbench, checkpoint: CheckpointConfig, mutants: Iterable[Mutant], most: int | None, end: float
) -> tuple[list[TriedMutant], int]:
    """At most so many, until `end` on the monotonic clock but never none; and how many could not be tried."""
    reference = bench.reference(checkpoint)
    quick, solution = with_short_timeouts(checkpoint, reference), bench.solution(checkpoint)
    source, found, unbuilt = _each_once(mutants), list[TriedMutant](), list[str]()
    room = WAITING * bench.effort.jobs if most is not None else bench.effort.jobs
    while should_continue(len(found), len(unbuilt), most, late=time.monotonic() >= end):
        batch = list(itertools.islice(source, room if most is None else min(room, most - len(found))))
        if not batch:
            break
        bench.progress(ProgressEvent(ProgressKind.EVALUATE_MUTANTS, checkpoint=checkpoint.name, count=len(found)))
        with tempfile.TemporaryDirectory(prefix="slop-code-mutants-") as scratch:
            folders = [_written(one, solution, Path(scratch) / f"mutant{place}") for place, one in enumerate(batch)]
            outcomes = bench.evaluate_all([EvaluationRequest(quick, folder) for folder in folders])
        for mutant, outcome in zip(batch, outcomes, strict=True):
            one = mutant_result(mutant, reference, outcome)
            if isinstance(one, TriedMutant):
                found.append(one)
            else:
                unbuilt.append(one)
    if unbuilt and not found:
        raise InfrastructureError(f"no mutant of the reference of {checkpoint.name} could be tried: {unbuilt[-1]}")
    return found, len(unbuilt)


def should_continue(found: int, unbuilt: int, most: int | None, *, late: bool) -> bool:
    if found and late:
        return False
    return (most is None or found < most) and unbuilt <= max(MAX_UNBUILT, 2 * (most or found))


def mutant_result(
    mutant: Mutant, reference: CorrectnessResults, outcome: CorrectnessResults | InfrastructureError
) -> TriedMutant | str:
    """A text, the reason, where there is no verdict by no fault of the mutant's."""
    if isinstance(outcome, InfrastructureError):
        return str(outcome)
    reason = outcome.infrastructure_failure_reason
    if reason is None:
        return TriedMutant(mutant, failed(reference, outcome))
    ended = outcome.isolation and outcome.pytest_exit_code in ENDED_BY_PROGRAM
    return TriedMutant(mutant, frozenset(), reason) if ended else reason


def failed(reference: CorrectnessResults, results: CorrectnessResults) -> frozenset[str]:
    able = {test.nodeid for test in deciding_tests(reference)}
    return frozenset(test.nodeid for test in results.tests if test.nodeid in able and test.status != "passed")


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
