"""Records that pass between the parts of a run. Each can cross a thread, a process or a network."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from slop_code._arguments import check_optional_folder, check_path, check_type
from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
from slop_code.execution.environment import EnvironmentSpec
from slop_code.runs.checkpoint_lines import CheckpointFacts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slop_code.evaluation.report import Attempt, TestAttempt
    from slop_code.execution.submission import SubmissionTree

OutcomeSource = Literal["evaluated", "cached", "up_to_date", "rejected"]
"""Where a result comes from: `evaluated` is made now, `cached` is taken from the result cache,
and `up_to_date` is the existing result. `rejected` is none: the submission cannot be evaluated, or its job was
cancelled before it started.
"""

SubmissionKey = tuple[str, Path, str, str, Path, Path | None]
"""Identity of a submission within a plan. Submissions with equal keys share their inputs and their result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Code to be evaluated against a checkpoint of a problem. Paths may be given as strings."""

    problem: ProblemConfig
    checkpoint: CheckpointConfig
    environment: EnvironmentSpec
    path: Path
    output: Path | None = None
    """The folder for evaluation.json and .scbench, or None if the result goes to the result cache alone."""

    run: str = ""
    """Name of the run it belongs to, as the summary shows it."""

    key: SubmissionKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_type("problem", self.problem, (ProblemConfig,), "a ProblemConfig")
        check_type("checkpoint", self.checkpoint, (CheckpointConfig,), "a CheckpointConfig")
        check_type("environment", self.environment, (EnvironmentSpec,), "an EnvironmentSpec")
        check_type("run", self.run, (str,), "the name of a run")
        path = check_path("path", self.path, "the path of the submission's folder")
        output = check_optional_folder("output", self.output)
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "output", output)
        key = (self.run, self.problem.path, self.checkpoint.name, self.environment.name, path, output)
        object.__setattr__(self, "key", key)

    @property
    def label(self) -> str:
        return "/".join(part for part in (self.run, self.problem.name, self.checkpoint.name) if part)


@dataclass(frozen=True, slots=True)
class RunIssue:
    """A run, a problem or a checkpoint that cannot be evaluated; the rest of the run is evaluated."""

    run: str
    problem: str | None
    checkpoint: str | None
    reason: str
    order: int | None = None
    """Number of the checkpoint within its problem, from 1."""

    output: Path | None = None
    """Folder of the checkpoint, which may hold an earlier result."""

    snapshot: Path | None = None
    """Path of its snapshot, whether there is one or not."""

    unknown_problem: bool = False
    """There is no problem with the name of its folder."""

    @property
    def label(self) -> str:
        return "/".join(part for part in (self.run, self.problem, self.checkpoint) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """A job as an executor gets it; every field can be pickled."""

    problem: ProblemConfig
    checkpoint: str
    environment: EnvironmentSpec
    submission: Path
    digest: str
    """Digest of the submission's tree, when the plan was made."""

    attempts: tuple[Attempt, ...] = ()
    """Earlier attempts, which ended without a verdict."""

    weight: int = 1
    """Judge/subject pairs at a time."""

    starved: Mapping[str, TestAttempt] = field(default_factory=dict)
    """By node id: what tests said in an earlier attempt that was starved."""

    hidden: tuple[Path, ...] = ()
    """Folders that the submission must not see, as they hold results of others."""

    pytest_args: tuple[str, ...] = ()
    """Arguments that select a part of the tests, so that there is no verdict."""

    unsent: SubmissionTree | None = None
    """A submission beyond the limits, which was not sent to this machine."""

    @property
    def alone(self) -> bool:
        """Nothing else runs meanwhile."""
        return bool(self.starved)


@dataclass(frozen=True, slots=True)
class JobResult:
    """The answer of an executor. A job never raises: it returns this."""

    facts: CheckpointFacts
    archive: bytes | None = None
    """evaluation.json and .scbench, packed; None where the job failed before it could write a result."""

    final: bool = False
    """Another attempt would end in the same way: the submission or the problem is rejected."""

    starved: Mapping[str, TestAttempt] = field(default_factory=dict)
    """What tests said is not believed, since the machine had too little for them: the job is to run again, alone."""

    serial_s: float | None = None
    """Seconds that it would have taken in one pair, or None if unknown."""

    folder: Path | None = None
    """The same files in a temporary folder of this machine, to be moved to the output of a submission."""

    @classmethod
    def failed(
        cls, reason: str, before: Sequence[Attempt] = (), *, final: bool = False, duration: float = 0.0
    ) -> JobResult:
        """No verdict and no result files. `before` has the earlier attempts."""
        facts = CheckpointFacts.no_verdict(
            reason, state="not_evaluated" if final else "infrastructure_failure", attempts=len(before) + 1
        )
        return cls(facts.model_copy(update={"duration": duration}), final=final)


@dataclass(frozen=True, slots=True)
class Job:
    """One evaluation, with every submission that needs its result."""

    key: str | None
    """Its result cache key; None where it is unknown before the evaluation (an image that is not pulled yet)."""

    digest: str
    targets: tuple[Submission, ...]
    expected_s: float | None = None
    """Duration of the last evaluation of the same checkpoint, in one pair."""

    max_pairs: int = 1
    """Pairs that its tests may be divided among, if slots are free (`parallel: auto`)."""

    cached: bool = False
    """The result cache has it: nothing needs to run."""

    pytest_args: tuple[str, ...] = ()
    """Arguments that select a part of the tests, so that there is no verdict."""

    verdicts: frozenset[SubmissionKey] = frozenset()
    """Targets that have a verdict on the same submission, which an infrastructure failure must not replace."""

    @property
    def label(self) -> str:
        more = f" (and {len(self.targets) - 1} more)" if len(self.targets) > 1 else ""
        return self.targets[0].label + more


@dataclass(frozen=True, slots=True)
class JobStarted:
    job: Job
    pairs: int = 1
    """Pairs that its tests are divided among (`parallel: auto`), if that many processors are free."""


@dataclass(frozen=True, slots=True)
class JobRetrying:
    job: Job
    attempt: Attempt
    delay: float


@dataclass(frozen=True, slots=True)
class JobPostponed:
    """The job was starved, and runs again at the end of the run, alone."""

    job: Job
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class SubmissionOutcome:
    """The end of a submission's evaluation."""

    submission: Submission
    facts: CheckpointFacts
    source: OutcomeSource


RunEvent = JobStarted | JobRetrying | JobPostponed | SubmissionOutcome
