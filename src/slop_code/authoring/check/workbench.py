"""Where a problem is tried out: submissions of every kind against its tests, in the boxes of an evaluation."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Union

from slop_code.authoring.check.strength.mutant_selection import USUAL, MutantBudget
from slop_code.authoring.reference_times import remember
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.evidence import NEVER_RAN
from slop_code.evaluation.problem_lookup import ENVIRONMENT, environment_word
from slop_code.evaluation.pytest_runner import PytestRunner
from slop_code.evaluation.run_tests import run_side_by_side
from slop_code.execution.cache import Cache
from slop_code.execution.concurrency import available_cpus
from slop_code.execution.environment import load_environment
from slop_code.execution.progress_events import ProgressEvent, ProgressKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.progress_events import ProgressCallback

Tried = Union["CorrectnessResults", InfrastructureError]
"""What came of a trial; the error where this machine could not evaluate it at all."""

SOLUTIONS = "solutions"


def environment_for(problem: ProblemConfig, given: str | None) -> EnvironmentSpec:
    return load_environment(environment_word(problem, given))


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is done by the steps that could go on for ever."""

    repeat: int = 3
    """Runs for each condition of the step stability."""

    seed: int = 1
    """The first; others follow from it."""

    budget: MutantBudget = USUAL
    """Of the step strength."""

    jobs: int = field(default_factory=available_cpus)


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """One evaluation that a step wants: what differs from the plain one is said here."""

    checkpoint: CheckpointConfig
    submission: Path
    problem: ProblemConfig | None = None
    environment: EnvironmentSpec | None = None
    seed: int | None = None
    only: tuple[str, ...] | None = None
    pairs: int = 1
    """At most so many at a time; more only where `problem.parallel` allows it."""

    pytest_args: tuple[str, ...] = ()
    output: Path | None = None
    """Where raw reports are kept, in `.scbench`."""


class Workbench:
    """One problem, and what was found out about it so far."""

    def __init__(
        self,
        problem: ProblemConfig,
        environment: EnvironmentSpec,
        *,
        checkpoints: Sequence[CheckpointConfig] = (),
        asked: str | None = None,
        effort: Effort | None = None,
        cache: Cache | None = None,
        progress: ProgressCallback = lambda _: None,
    ) -> None:
        """`checkpoints`: those to look at; none: all. `asked`: the word that the environment was asked for with."""
        self.problem = problem
        self.environment = environment
        self.checkpoints = tuple(checkpoints) or tuple(problem.checkpoints.values())
        self.asked = asked
        self.effort = effort or Effort()
        self.cache = cache or Cache.default()
        self.progress = progress
        self._references: dict[str, CorrectnessResults] = {}

    @property
    def environment_file(self) -> str | None:
        """In the problem's folder; None where the environment comes from elsewhere."""
        own = self.asked is None and os.path.lexists(self.problem.path / ENVIRONMENT)
        return ENVIRONMENT if own else None

    def solution(self, checkpoint: CheckpointConfig) -> Path:
        """Where its reference is, or would be."""
        return self.problem.path / SOLUTIONS / checkpoint.name

    def solved(self) -> Sequence[CheckpointConfig]:
        """Those to look at; a UsageError where one has no reference: nothing can be proven there."""
        if missing := [one.name for one in self.checkpoints if not os.path.isdir(self.solution(one))]:
            where = f"{SOLUTIONS}/{missing[0]}"
            raise UsageError(f"no reference for {', '.join(missing)}: expected in {where}; fix that first")
        return self.checkpoints

    def before(self, checkpoint: CheckpointConfig) -> CheckpointConfig | None:
        names = list(self.problem.checkpoints)
        place = names.index(checkpoint.name)
        return self.problem.checkpoints[names[place - 1]] if place else None

    def reference(self, checkpoint: CheckpointConfig) -> CorrectnessResults:
        """The reference as any submission is evaluated; once, however many steps ask."""
        if checkpoint.name not in self._references:
            self.progress(
                ProgressEvent(ProgressKind.EVALUATE_REFERENCE, problem=self.problem.name, checkpoint=checkpoint.name)
            )
            self._references[checkpoint.name] = self.evaluate(EvaluationRequest(checkpoint, self.solution(checkpoint)))
            remember(self.cache, self._references[checkpoint.name])
        return self._references[checkpoint.name]

    def evaluate(self, trial: EvaluationRequest) -> CorrectnessResults:
        """An InfrastructureError where this machine cannot evaluate anything; else whatever came of it."""
        results = self._runner(trial).run(trial.pytest_args)
        if results.infrastructure_failure_reason and results.pytest_exit_code == NEVER_RAN and not results.isolation:
            raise InfrastructureError(results.infrastructure_failure_reason)
        return results

    def try_all(self, trials: Sequence[EvaluationRequest]) -> list[Tried]:
        """As many at a time as `effort.jobs` says, in their order; an error of one leaves the others alone."""
        free = threading.BoundedSemaphore(self.effort.jobs)

        def action(trial: EvaluationRequest) -> Callable[[], Tried]:
            def work() -> Tried:
                with free:
                    try:
                        return self.evaluate(trial)
                    except InfrastructureError as error:
                        return error

            return work

        return run_side_by_side([action(trial) for trial in trials]) if trials else []

    def _runner(self, trial: EvaluationRequest) -> PytestRunner:
        if not os.path.isdir(trial.submission):
            raise UsageError(f"{trial.submission}: no such folder; a reference solution is expected there")
        return PytestRunner(
            trial.problem or self.problem,
            trial.checkpoint,
            trial.environment or self.environment,
            trial.submission,
            output_dir=trial.output,
            cache=self.cache,
            progress=self.progress,
            max_pairs=trial.pairs,
            only=trial.only,
            seed=trial.seed,
        )


def all_judged(found: Sequence[Tried]) -> list[CorrectnessResults]:
    judged = []
    for one in found:
        if isinstance(one, InfrastructureError):
            raise one
        judged.append(one)
    return judged


def twice(
    try_all: Callable[[Sequence[EvaluationRequest]], list[Tried]], trials: Sequence[EvaluationRequest]
) -> list[Tried]:
    """What pytest itself did not end may be the fault of the machine: it is tried once more."""
    found = try_all(trials)
    again = [place for place, one in enumerate(found) if unended(one)]
    for place, one in zip(again, try_all([trials[place] for place in again]), strict=True):
        found[place] = one
    return found


def unended(one: Tried) -> bool:
    if isinstance(one, InfrastructureError):
        return True
    return one.infrastructure_failure and one.pytest_exit_code == NEVER_RAN
