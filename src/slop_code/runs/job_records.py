"""What goes between the parts of a run: plain values that cross a thread, a process or a network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from slop_code.runs.checkpoint_lines import CheckpointFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.report import Attempt
    from slop_code.execution.environment import EnvironmentSpec

OutcomeSource = Literal["evaluated", "stored", "kept", "refused"]
"""Run now; taken from the store; the result that lay there was up to date; not evaluated as it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Code to be evaluated against one checkpoint of a problem. Paths may be given as strings."""

    problem: ProblemConfig
    checkpoint: CheckpointConfig
    environment: EnvironmentSpec
    path: Path
    output: Path | None = None
    """Where evaluation.json and .scbench go; None: into the store alone."""

    run: str = ""
    """Which run it belongs to, as it is called in the summary."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        object.__setattr__(self, "output", Path(self.output) if self.output is not None else None)

    @property
    def label(self) -> str:
        return "/".join(part for part in (self.run, self.problem.name, self.checkpoint.name) if part)


@dataclass(frozen=True, slots=True)
class RunIssue:
    """Something of a run that cannot be evaluated as it stands; the rest goes on."""

    run: str
    problem: str | None
    checkpoint: str | None
    reason: str
    order: int | None = None
    """The checkpoint's place among those of its problem, from 1."""

    @property
    def label(self) -> str:
        return "/".join(part for part in (self.run, self.problem, self.checkpoint) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """One evaluation for an executor; everything in it can be pickled."""

    problem: ProblemConfig
    checkpoint: str
    environment: EnvironmentSpec
    submission: Path
    digest: str
    """Of the submission's tree, as it was planned."""

    attempts: tuple[Attempt, ...] = ()
    """Those before this one, which came to no verdict."""

    weight: int = 1
    """Judge/subject pairs at a time."""

    hidden: tuple[Path, ...] = ()
    """Folders that the submission may not see, wherever they lie: results of others are there."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """What an executor gives back: jobs return outcomes and never raise."""

    facts: CheckpointFacts
    parcel: bytes | None = None
    """evaluation.json and .scbench; None where not even an infrastructure failure could be written down."""

    final: bool = False
    """Whether another attempt would come to the same end: the submission or the problem is refused as it stands."""

    @classmethod
    def failed(
        cls, reason: str, before: Sequence[Attempt] = (), *, final: bool = False, duration: float = 0.0
    ) -> JobResult:
        """No verdict, and no parcel; `before`: the attempts before this one."""
        facts = CheckpointFacts.none(
            reason, state="not_evaluated" if final else "infrastructure_failure", attempts=len(before) + 1
        )
        return cls(facts.model_copy(update={"duration": duration}), final=final)


@dataclass(frozen=True, slots=True)
class Job:
    """One evaluation, and everyone who wants its result."""

    key: str | None
    """In the store; None where it cannot be known before the evaluation (an image that is not there yet)."""

    digest: str
    targets: tuple[Submission, ...]
    reason: str
    """Why it is not up to date."""

    expected_s: float | None = None
    """How long it took before."""

    stored: bool = False
    """Whether the store has it: then nothing needs to run."""

    @property
    def label(self) -> str:
        more = f" (and {len(self.targets) - 1} more)" if len(self.targets) > 1 else ""
        return self.targets[0].label + more


@dataclass(frozen=True, slots=True)
class JobStarted:
    job: Job


@dataclass(frozen=True, slots=True)
class JobRetrying:
    job: Job
    attempt: Attempt
    delay: float


@dataclass(frozen=True, slots=True)
class SubmissionOutcome:
    """The end of one submission's evaluation."""

    submission: Submission
    facts: CheckpointFacts
    source: OutcomeSource


RunEvent = JobStarted | JobRetrying | SubmissionOutcome
