"""Records of the reward service's queue: evaluations, and their outcomes."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code.errors import SlopCodeError

if TYPE_CHECKING:
    from slop_code.bridges.service.service_records import EvaluationSource, Fault, ServiceState
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.runs.jobs.job_records import Job

SHUTTING_DOWN = "the service is shutting down; send it again"


class QueueFullError(SlopCodeError):
    def __init__(self, retry_after: int, reason: str = "the queue is full") -> None:
        super().__init__(f"{reason}; try again in {retry_after} s")
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class EvaluationOutcome:
    """The end of an evaluation."""

    state: ServiceState
    results: CorrectnessResults | None = None
    reason: str | None = None
    source: EvaluationSource = "evaluated"
    attempts: int = 1
    fault: Fault = "request"
    """Whose mistake a rejected request is."""

    cancelled: bool = False
    """It ended without a verdict as nobody waits for it, or as the service is shutting down."""

    @classmethod
    def of(cls, results: CorrectnessResults, source: EvaluationSource) -> EvaluationOutcome:
        state: ServiceState = "partial" if results.partial else "evaluated"
        if results.infrastructure_failure:
            state = "infrastructure_failure"
        return cls(state, results, results.infrastructure_failure_reason, source)

    @classmethod
    def of_cancelled(cls) -> EvaluationOutcome:
        return cls("infrastructure_failure", reason=SHUTTING_DOWN, cancelled=True)


@dataclass(slots=True, eq=False)
class QueuedEvaluation:
    """An evaluation, shared by all requests with the same inputs that came before it ended."""

    job: Job
    folders: ExitStack
    """Folders of the submission and of its result, removed at the end."""

    ended: Future[EvaluationOutcome] = field(default_factory=Future)
    requests: int = 1
    """Requests that wait for it; it is cancelled when the last one is withdrawn."""

    running: bool = False

    @classmethod
    def of_cached(cls, job: Job, results: CorrectnessResults) -> QueuedEvaluation:
        """One that has ended."""
        evaluation = cls(job, ExitStack())
        evaluation.ended.set_result(EvaluationOutcome.of(results, "cached"))
        return evaluation
