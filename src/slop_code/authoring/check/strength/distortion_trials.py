"""Evaluation of distorted references, which finds tests that never fail."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import first_line, single_line
from slop_code.authoring.check.strength.distortions import DISTORTIONS, FAITHFUL, can_distort, distort
from slop_code.authoring.check.strength.mutant_trials import with_short_timeouts
from slop_code.authoring.check.workbench import EvaluationRequest
from slop_code.errors import InfrastructureError
from slop_code.execution.progress_events import ProgressEvent, ProgressKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from slop_code.authoring.check.strength.distortions import Distortion
    from slop_code.authoring.check.workbench import Workbench
    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.execution.environment import EnvironmentSpec


@dataclass(frozen=True, slots=True)
class DistortionResult:
    distortion: Distortion
    failed: frozenset[str]
    """Without a verdict, tests without a result count as failed, as they might fail."""

    no_verdict: str | None = None


def try_distortions(
    bench: Workbench, checkpoint: CheckpointConfig, tests: Collection[str]
) -> list[DistortionResult] | str:
    """Tried until each of these tests has failed; a text is the reason why the reference cannot be distorted."""
    problem, solution = bench.problem, bench.solution(checkpoint)
    if reason := why_not_distortable(problem, bench.environment, solution):
        return reason
    quick, only = with_short_timeouts(checkpoint, bench.reference(checkpoint)), tuple(tests)
    bench.progress(ProgressEvent(ProgressKind.EVALUATE_DISTORTIONS, checkpoint=checkpoint.name))
    with tempfile.TemporaryDirectory(prefix="slop-code-mutants-") as scratch:

        def request(distortion: Distortion) -> EvaluationRequest:
            folder = Path(tempfile.mkdtemp(dir=scratch)) / "distorted"
            environment = distort(distortion, bench.environment, problem.entry_file, solution, folder)
            return EvaluationRequest(quick, folder, environment=environment, only=only)

        def distorted(distortions: Sequence[Distortion]) -> list[DistortionResult]:
            outcomes = bench.evaluate_all([request(distortion) for distortion in distortions])
            return [
                distortion_result(distortion, only, outcome)
                for distortion, outcome in zip(distortions, outcomes, strict=True)
            ]

        [faithful] = distorted([FAITHFUL])
        if reason := wrapper_fault(faithful, len(only)):
            return reason
        passing, results = frozenset(only), list[DistortionResult]()
        while passing and len(results) < len(DISTORTIONS):
            results += distorted(DISTORTIONS[len(results) : len(results) + bench.effort.jobs])
            passing = passing.difference(*(result.failed for result in results))
    return results


def why_not_distortable(problem: ProblemConfig, spec: EnvironmentSpec, solution: Path) -> str | None:
    if problem.in_process:
        return "the tests load the program into their own process"
    if not can_distort(spec, problem.entry_file, solution):
        return f"the reference has no file {single_line(spec.entry(problem.entry_file)[-1])}"
    return None


def wrapper_fault(faithful: DistortionResult, tests: int) -> str | None:
    """The reason why a wrapper that changes nothing behaves differently from the reference."""
    if faithful.no_verdict is not None:
        return f"no verdict on the reference behind a wrapper: {single_line(first_line(faithful.no_verdict))}"
    if faithful.failed:
        return f"{len(faithful.failed)} of {tests} tests fail when the reference runs behind a wrapper"
    return None


def distortion_result(
    distortion: Distortion, tests: Iterable[str], outcome: CorrectnessResults | InfrastructureError
) -> DistortionResult:
    if isinstance(outcome, InfrastructureError):
        return DistortionResult(distortion, frozenset(tests), str(outcome))
    passed = {test.nodeid for test in outcome.tests if test.status == "passed"}
    return DistortionResult(distortion, frozenset(tests) - passed, outcome.infrastructure_failure_reason)
