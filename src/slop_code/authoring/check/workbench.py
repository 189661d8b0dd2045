"""Evaluations that the steps of a check need, with the results of the references."""

from __future__ import annotations

import itertools
import os
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Union

from slop_code.authoring.check.failure_text import first_line
from slop_code.authoring.check.strength.mutant import DEFAULT_BUDGET, MutantBudget
from slop_code.authoring.problem_folders import SOLUTIONS
from slop_code.authoring.reference_times import store_reference_times
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.evidence import NEVER_RAN
from slop_code.evaluation.problem.problem_lookup import ENVIRONMENT
from slop_code.evaluation.pytest_runner import PytestRunner
from slop_code.execution.cache import Cache
from slop_code.execution.concurrency import run_cancellable
from slop_code.execution.processors import available_cpus
from slop_code.execution.progress_events import ProgressEvent, ProgressKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.progress_events import ProgressCallback

ResultsOrError = Union["CorrectnessResults", InfrastructureError]
"""The error stands for an evaluation that this machine could not run."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Bounds for the steps that could repeat without end."""

    repeat: int = 3
    """Runs for each condition of the step stability."""

    seed: int = 1
    """The first seed; others follow from it."""

    budget: MutantBudget = DEFAULT_BUDGET
    """Mutants of the step strength."""

    jobs: int = field(default_factory=available_cpus)


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """An evaluation for a step, by its differences from a plain evaluation."""

    checkpoint: CheckpointConfig
    submission: Path
    problem: ProblemConfig | None = None
    environment: EnvironmentSpec | None = None
    seed: int | None = None
    only: tuple[str, ...] | None = None
    pairs: int = 1
    """An upper bound; more than 1 has an effect only where `problem.parallel` allows it."""

    pytest_args: tuple[str, ...] = ()
    output: Path | None = None
    """A folder that keeps the raw reports, in `.scbench`."""

    repeat_starved: bool = True
    """Repeat tests for which the machine had no processor or no memory."""


class Workbench:
    """One problem, with the results of its references as far as they were evaluated."""

    def __init__(
        self,
        problem: ProblemConfig,
        environment: EnvironmentSpec,
        *,
        checkpoints: Sequence[CheckpointConfig] = (),
        named_environment: str | None = None,
        effort: Effort | None = None,
        progress: ProgressCallback = lambda _: None,
    ) -> None:
        """No `checkpoints` stands for all. `named_environment` is that of the user, if any was named."""
        self.problem = problem
        self.environment = environment
        self.checkpoints = tuple(checkpoints) or tuple(problem.checkpoints.values())
        self.named_environment = named_environment
        self.effort = effort or Effort()
        self.cache = Cache.default()
        self.progress = progress
        self._references: dict[str, CorrectnessResults] = {}

    @property
    def environment_file(self) -> str | None:
        """The problem's own environment file; None where the environment comes from elsewhere."""
        own = self.named_environment is None and os.path.lexists(self.problem.path / ENVIRONMENT)
        return ENVIRONMENT if own else None

    def solution(self, checkpoint: CheckpointConfig) -> Path:
        """The folder of the reference, whether or not it exists."""
        return self.problem.path / SOLUTIONS / checkpoint.name

    def checkpoints_with_reference(self) -> Sequence[CheckpointConfig]:
        """All checkpoints of this check; a UsageError where a reference is missing."""
        if missing := [item.name for item in self.checkpoints if not os.path.isdir(self.solution(item))]:
            folder = f"{SOLUTIONS}/{missing[0]}"
            raise UsageError(f"no reference for {', '.join(missing)}: expected in {folder}; fix that first")
        return self.checkpoints

    def previous_checkpoint(self, checkpoint: CheckpointConfig) -> CheckpointConfig | None:
        names = list(self.problem.checkpoints)
        index = names.index(checkpoint.name)
        return self.problem.checkpoints[names[index - 1]] if index else None

    def reference(self, checkpoint: CheckpointConfig) -> CorrectnessResults:
        """The reference, evaluated like any submission; only once, however many steps ask."""
        if checkpoint.name not in self._references:
            self.notify(ProgressKind.EVALUATE_REFERENCE, checkpoint)
            self._references[checkpoint.name] = self.evaluate(EvaluationRequest(checkpoint, self.solution(checkpoint)))
            store_reference_times(self.cache, self._references[checkpoint.name])
        return self._references[checkpoint.name]

    def sound_reference(self, checkpoint: CheckpointConfig) -> CorrectnessResults:
        """The results of the reference; a UsageError where it is not sound."""
        results = self.reference(checkpoint)
        if fault := reference_fault(checkpoint.name, results):
            raise UsageError(fault)
        return results

    def notify(
        self, kind: ProgressKind, checkpoint: CheckpointConfig, name: str = "", *, count: int = 0, total: int = 0
    ) -> None:
        event = ProgressEvent(kind, name, self.problem.name, checkpoint.name, count=count, total=total)
        self.progress(event)

    def evaluate(self, request: EvaluationRequest) -> CorrectnessResults:
        """Raises InfrastructureError where this machine cannot evaluate anything."""
        results = self._runner(request).run(request.pytest_args)
        if results.infrastructure_failure_reason and results.pytest_exit_code == NEVER_RAN and not results.isolation:
            raise InfrastructureError(results.infrastructure_failure_reason)
        return results

    def evaluate_all(self, requests: Sequence[EvaluationRequest], event: ProgressEvent) -> list[ResultsOrError]:
        """Results in the order of the requests. At most `effort.jobs` run at a time.

        `event` is sent now, and with the next count after each of them.
        """
        if not requests:
            return []
        free, lock = threading.BoundedSemaphore(self.effort.jobs), threading.Lock()
        counts = itertools.count(event.count)

        def send_count() -> None:
            with lock:  # in the order of the counts
                self.progress(replace(event, count=next(counts)))

        def action(request: EvaluationRequest) -> Callable[[], ResultsOrError]:
            def work() -> ResultsOrError:
                with free:
                    try:
                        return self.evaluate(request)
                    except InfrastructureError as error:
                        return error
                    finally:
                        send_count()

            return work

        send_count()
        return run_cancellable([action(request) for request in requests])

    def _runner(self, request: EvaluationRequest) -> PytestRunner:
        return PytestRunner(
            request.problem or self.problem,
            request.checkpoint,
            request.environment or self.environment,
            request.submission,
            output_dir=request.output,
            cache=self.cache,
            progress=self.progress,
            max_pairs=request.pairs,
            only=request.only,
            seed=request.seed,
            repeat_starved=request.repeat_starved,
        )


def reference_fault(checkpoint: str, results: CorrectnessResults) -> str | None:
    """The reason why the reference is not sound; quarantined tests do not count."""
    if reason := results.infrastructure_failure_reason:
        return f"no verdict on the reference of {checkpoint}: {first_line(reason)}; fix that first"
    counted = [test for test in results.tests if not test.quarantined]
    failures = sum(test.status != "passed" for test in counted)
    if failures:
        return f"{failures} of {len(counted)} tests fail with the reference of {checkpoint}; fix that first"
    return None


def results_or_raise(outcomes: Sequence[ResultsOrError]) -> list[CorrectnessResults]:
    results = []
    for outcome in outcomes:
        if isinstance(outcome, InfrastructureError):
            raise outcome
        results.append(outcome)
    return results


def evaluate_with_retry(
    evaluate_all: Callable[[Sequence[EvaluationRequest]], list[ResultsOrError]], requests: Sequence[EvaluationRequest]
) -> list[ResultsOrError]:
    """An evaluation that pytest did not end itself may have failed by the machine, so it is repeated once."""
    outcomes = evaluate_all(requests)
    retried = [index for index, outcome in enumerate(outcomes) if needs_retry(outcome)]
    for index, outcome in zip(retried, evaluate_all([requests[index] for index in retried]), strict=True):
        outcomes[index] = outcome
    return outcomes


def needs_retry(outcome: ResultsOrError) -> bool:
    if isinstance(outcome, InfrastructureError):
        return True
    return outcome.infrastructure_failure and outcome.pytest_exit_code == NEVER_RAN
