"""Mutants in the place of the reference: what the tests make of each."""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.authoring.bench import Trial
from slop_code.authoring.mutants.behaviour import DISTORTIONS, FAITHFUL, can_distort, distort
from slop_code.authoring.mutants.solution import copy_solution, is_sound, overwrite
from slop_code.errors import InfrastructureError
from slop_code.evaluation.judging import side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from slop_code.authoring.bench import Workbench
    from slop_code.authoring.mutants.behaviour import Distortion
    from slop_code.authoring.mutants.edit import Mutant
    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.report import CorrectnessResults, TestResult

WAITING = 4
"""Mutants on disk for each that is evaluated at the time."""

LEAST_TEST_S, LEAST_SESSION_S = 5.0, 20.0


@dataclass(frozen=True, slots=True)
class Tried:
    mutant: Mutant
    failed: frozenset[str]
    """The tests, as `file::id`, that pass with the reference and not with this."""

    ended: str | None = None
    """Why there was no verdict: it ran on for too long, or broke pytest."""

    @property
    def caught(self) -> bool:
        return bool(self.failed) or self.ended is not None


@dataclass(frozen=True, slots=True)
class Distorted:
    distortion: Distortion
    failed: frozenset[str]


def telling(reference: CorrectnessResults) -> list[TestResult]:
    """The tests that can catch anything: they pass with the reference, and decide."""
    return [test for test in reference.tests if test.status == "passed" and not test.quarantined]


def hurried(checkpoint: CheckpointConfig, reference: CorrectnessResults) -> CheckpointConfig:
    """The same with the time that its reference needs, many times over: an endless loop ends soon.

    In steps, so that what is kept by content is the same after every measurement.
    """
    longest = max((test.duration_ms / 1000 for test in reference.tests), default=0.0)
    session = _step(LEAST_SESSION_S, 5 * reference.phases.get("tests", 0.0))
    return checkpoint.model_copy(
        update={
            "timeout": min(checkpoint.timeout, _step(LEAST_TEST_S, 10 * longest)),
            "session_timeout": min(checkpoint.session_timeout or session, session),
        }
    )


def _step(least: float, needed: float) -> float:
    while least < needed:
        least *= 2
    return least


def try_mutants(
    bench: Workbench, checkpoint: CheckpointConfig, mutants: Iterable[Mutant], most: int | None, end: float
) -> tuple[list[Tried], int]:
    """At most so many, until `end` on the monotonic clock but never none; and how many could not be set up."""
    reference = bench.reference(checkpoint)
    quick, solution = hurried(checkpoint, reference), bench.solution(checkpoint)
    source, found, unbuilt = _each_once(mutants), list[Tried](), list[InfrastructureError]()
    room = WAITING * bench.effort.jobs if most is not None else bench.effort.jobs
    while len(unbuilt) <= 2 * (most or len(found)):
        batch = list(itertools.islice(source, room if most is None else min(room, most - len(found))))
        if not batch:
            break
        bench.progress(f"{checkpoint.name}: {len(found)} mutants tried")
        with tempfile.TemporaryDirectory(prefix="slop-code-mutants-") as scratch:
            folders = [_written(one, solution, Path(scratch) / f"mutant{place}") for place, one in enumerate(batch)]
            outcomes = _evaluate(bench, [Trial(quick, folder) for folder in folders])
        for mutant, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, InfrastructureError):
                unbuilt.append(outcome)
            else:
                found.append(Tried(mutant, failed(reference, outcome), outcome.infrastructure_failure_reason))
        if time.monotonic() >= end:
            break
    if unbuilt and not found:
        raise unbuilt[-1]
    return found, len(unbuilt)


def try_distortions(bench: Workbench, checkpoint: CheckpointConfig) -> list[Distorted]:
    """With the checkpoint's own tests; none where even a wrapper that changes nothing is not the reference."""
    reference, solution, problem = bench.reference(checkpoint), bench.solution(checkpoint), bench.problem
    own = tuple(test.nodeid for test in telling(reference) if test.checkpoint == checkpoint.name)
    if not own or problem.in_process or not can_distort(bench.environment, problem.entry_file, solution):
        return []
    quick = hurried(checkpoint, reference)
    bench.progress(f"{checkpoint.name}: what the tests look at")
    with tempfile.TemporaryDirectory(prefix="slop-code-mutants-") as scratch:

        def trial(place: int, distortion: Distortion) -> Trial:
            folder = Path(scratch) / f"distorted{place}"
            environment = distort(distortion, bench.environment, problem.entry_file, solution, folder)
            return Trial(quick, folder, environment=environment, only=own)

        [faithful] = _evaluate(bench, [trial(0, FAITHFUL)])
        if isinstance(faithful, InfrastructureError) or failed(reference, faithful):
            return []
        outcomes = _evaluate(bench, [trial(place, one) for place, one in enumerate(DISTORTIONS, start=1)])
    return [
        Distorted(distortion, failed(reference, outcome))
        for distortion, outcome in zip(DISTORTIONS, outcomes, strict=True)
        if not isinstance(outcome, InfrastructureError)
    ]


def failed(reference: CorrectnessResults, results: CorrectnessResults) -> frozenset[str]:
    able = {test.nodeid for test in telling(reference)}
    return frozenset(test.nodeid for test in results.tests if test.nodeid in able and test.status != "passed")


def _each_once(mutants: Iterable[Mutant]) -> Iterator[Mutant]:
    seen = set()
    for mutant in mutants:
        text = (mutant.file, mutant.mutated)
        if text not in seen and mutant.mutated != mutant.text and is_sound(mutant):
            seen.add(text)
            yield mutant


def _written(mutant: Mutant, solution: Path, folder: Path) -> Path:
    copy_solution(solution, folder)
    overwrite(folder / mutant.file, mutant.mutated)
    return folder


def _evaluate(bench: Workbench, trials: Sequence[Trial]) -> list[CorrectnessResults | InfrastructureError]:
    """A mutant that cannot be set up, as it does not compile, leaves the others alone."""
    free = threading.BoundedSemaphore(bench.effort.jobs)

    def action(trial: Trial) -> Callable[[], CorrectnessResults | InfrastructureError]:
        def work() -> CorrectnessResults | InfrastructureError:
            with free:
                try:
                    return bench.evaluate(trial)
                except InfrastructureError as error:
                    return error

        return work

    return side_by_side([action(trial) for trial in trials])
