"""A whole run, from its folders to its outcomes."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import UsageError
from slop_code.evaluation.policy import PassPolicy, Policy
from slop_code.execution.cache import Cache
from slop_code.execution.cancellation import EvaluationCancelledError
from slop_code.execution.environment import EnvironmentSpec, load_environment
from slop_code.runs.background import in_background
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.conclude import lines_of, write_summary
from slop_code.runs.discover import UNNAMED_RUN, DiscoveredRun, discover
from slop_code.runs.executors import Executor, executor_class
from slop_code.runs.job_records import RunEvent, Submission, SubmissionOutcome
from slop_code.runs.plan import Plan, Shard, make_plan
from slop_code.runs.read_results import result_files, snapshots_in
from slop_code.runs.result_cache import ResultCache
from slop_code.runs.result_index import ResultIndex
from slop_code.runs.run_control import Retries, RunControl
from slop_code.runs.run_lock import lock_runs
from slop_code.runs.scheduler import run_jobs
from slop_code.runs.summary import NAMED, RunSummary, summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence

    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.runs.checkpoint_lines import CheckpointLine
    from slop_code.runs.job_records import RunIssue

    Runs = Path | str | Sequence[Path | str] | Sequence[Submission]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How runs are evaluated; nothing here changes a verdict."""

    workers: int | None = None
    """At a time; None: as many as there are processors."""

    executor: str = "threads"
    address: str | None = None
    """Of the executor's cluster."""

    retries: Retries = field(default_factory=Retries)
    overwrite: bool = False
    shard: Shard | None = None
    partial: bool = False
    """Only some problems of the runs: no summary is written, as it would replace that of all."""

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"workers: expected at least 1, found {self.workers}")


@dataclass(frozen=True, slots=True)
class RunEvaluation:
    """Runs that are held by us, and what is left to do in them."""

    runs: Sequence[DiscoveredRun]
    plan: Plan
    settings: RunSettings
    cache: Cache
    store: ResultCache
    indexes: dict[str, ResultIndex]
    outcomes: dict[int, CheckpointFacts] = field(default_factory=dict)
    """By the identity of the submission: two may be equal. What is up to date is there from the start."""

    def __post_init__(self) -> None:
        self.outcomes.update({id(submission): facts for submission, facts in self.plan.kept})

    @contextlib.contextmanager
    def executor(
        self, progress: ProgressCallback = lambda _: None, control: RunControl | None = None
    ) -> Iterator[Executor]:
        """Ready for the plan's jobs; an EvaluationCancelledError where the control is stopped before that."""
        settings = self.settings
        executor = executor_class(settings.executor)(settings.workers, settings.address, progress, self.cache)
        try:
            with (control or RunControl()).cancel_scope():
                executor.prepare([job.targets[0] for job in self.plan.jobs if not job.stored])
            yield executor
        finally:
            executor.close()
            self.store.trim()

    def keep(self) -> list[SubmissionOutcome]:
        return [SubmissionOutcome(submission, facts, "kept") for submission, facts in self.plan.kept]

    def refuse(self) -> list[SubmissionOutcome]:
        """For whoever waits for one outcome for each submission; in a summary they are troubles."""
        return [
            SubmissionOutcome(submission, CheckpointFacts.none(reason), "refused")
            for submission, reason in self.plan.refused
        ]

    def issues(self) -> list[RunIssue]:
        """Those that no outcome tells."""
        told = {(submission.label, reason) for submission, reason in self.plan.refused}
        return [issue for issue in self.plan.issues if (issue.label, issue.reason) not in told]

    def _hide(self) -> list[Path]:
        """Where results lie, or will: only what is there when a submission starts can be hidden from it."""
        loose = [one.output for run in self.runs if run.folder is None for one in run.submissions if one.output]
        for output in loose:
            with contextlib.suppress(OSError):  # told once something is to be written there
                output.mkdir(parents=True, exist_ok=True)
        return [folder.absolute() for folder in (*(run.folder for run in self.runs if run.folder), *loose)]

    def events(self, executor: Executor, control: RunControl) -> Iterator[RunEvent]:
        """What happens, as it happens; when this is closed, what runs is ended."""
        settings = self.settings
        driving = run_jobs(
            self.plan.jobs,
            executor,
            self.store,
            retries=settings.retries,
            control=control,
            overwrite=settings.overwrite,
            hidden=self._hide(),
        )
        with contextlib.closing(driving):
            for event in driving:
                if isinstance(event, SubmissionOutcome):
                    self.outcomes[id(event.submission)] = event.facts
                yield event

    def conclude(self, policy: Policy = PassPolicy.ALL_CASES) -> tuple[list[CheckpointLine], RunSummary]:
        """The lines of all runs; each run's own are written into its folder, unless this is a part of it.

        What is written knows the policies that have names; the summary that is given back knows this one too.
        """
        every: list[CheckpointLine] = []
        written: list[RunSummary] = []
        for run in self.runs:
            if run.folder is None:
                continue
            lines = lines_of(run, self.plan, self.outcomes, self.indexes[run.name])
            every += lines
            held = run.submissions or all(issue.problem is not None for issue in run.issues)
            if self.settings.shard is None and not self.settings.partial and held and not only_results(run):
                issues = [one for one in self.plan.issues if one.run == run.name]
                written.append(write_summary(run.folder, lines, issues))
            with contextlib.suppress(OSError):  # it only speeds up the next time
                self.indexes[run.name].save()
        alone = len(self.runs) == 1 and len(written) == 1 and policy in NAMED
        return every, written[0] if alone else summarise(
            every, self.plan.issues, tuple(dict.fromkeys((*NAMED, policy)))
        )


def only_results(run: DiscoveredRun) -> bool:
    """Results without any snapshot, as a run is handed on: they cannot be evaluated, and their summary stands."""
    if run.folder is None or run.submissions:
        return False
    return not snapshots_in(run.folder) and bool(result_files(run.folder))


@contextlib.contextmanager
def open_runs(
    runs: Sequence[DiscoveredRun],
    cache: Cache,
    settings: RunSettings,
    *,
    hold: bool = True,
    first: Callable[[DiscoveredRun], DiscoveredRun] = lambda run: run,
) -> Iterator[RunEvaluation]:
    """`hold`: nobody else evaluates these folders meanwhile; only a look at the plan needs no such thing.

    `first` is done with each run once it is held, before anything is planned.
    """
    store = ResultCache(cache)
    with contextlib.ExitStack() as stack:
        if hold:
            stack.enter_context(cache.shared_lock())
            runs = stack.enter_context(lock_runs(runs, settings.shard))
        held = [first(run) for run in runs]
        indexes = {run.name: ResultIndex.load(run.folder) for run in held}
        plan = make_plan(held, store, indexes, overwrite=settings.overwrite, shard=settings.shard)
        yield RunEvaluation(held, plan, settings, cache, store, indexes)


@in_background
def evaluate_run(
    runs: Runs,
    *,
    problems_dir: Path | str | None = None,
    problems: Collection[str] = (),
    environment: EnvironmentSpec | str | None = None,
    workers: int | None = None,
    executor: str = "threads",
    address: str | None = None,
    retries: Retries | None = None,
    overwrite: bool = False,
    shard: Shard | None = None,
    cache: Cache | None = None,
    control: RunControl | None = None,
    progress: ProgressCallback = lambda _: None,
) -> Generator[SubmissionOutcome, None, None]:
    """Outcomes as they come: of run folders, whose results and summaries are written there, or of submissions.

    Never raises for what a submission does. What cannot be evaluated and has no outcome of its own is one UsageError
    after the last of them. Closing the generator ends what runs; a `Control` does so from outside.
    """
    control = control or RunControl()
    settings = RunSettings(
        workers=workers,
        executor=executor,
        address=address,
        retries=retries or Retries(),
        overwrite=overwrite,
        shard=shard,
        partial=bool(problems),
    )
    found = _runs(runs, problems_dir, problems, environment)
    with open_runs(found, cache or Cache.default(), settings) as evaluation:
        yield from evaluation.refuse()
        yield from evaluation.keep()
        if evaluation.plan.jobs:
            with contextlib.suppress(EvaluationCancelledError), evaluation.executor(progress, control) as where:
                for event in evaluation.events(where, control):
                    if isinstance(event, SubmissionOutcome):
                        yield event
        evaluation.conclude()
        if issues := evaluation.issues():
            raise UsageError("\n".join(f"{issue.label}: {issue.reason}" for issue in issues))


def _runs(
    runs: Runs,
    problems_dir: Path | str | None,
    problems: Collection[str],
    environment: EnvironmentSpec | str | None,
) -> list[DiscoveredRun]:
    given: Iterable[Path | str | Submission] = [runs] if isinstance(runs, str | Path) else runs
    folders = [Path(one) for one in given if not isinstance(one, Submission)]
    loose = tuple(one for one in given if isinstance(one, Submission))
    _check_outputs(loose)
    spec = load_environment(environment) if isinstance(environment, str) else environment
    where = Path(problems_dir) if problems_dir is not None else None
    found = discover(folders, problems_dir=where, environment=spec, only=problems)
    return [*found, DiscoveredRun(UNNAMED_RUN, None, loose)] if loose else found


def _check_outputs(submissions: Sequence[Submission]) -> None:
    """Nothing is written where a submission reads it, or where another result is written."""
    paths = {_real(one.path): one for one in submissions}
    outputs: dict[Path, Submission] = {}
    for one in submissions:
        if one.output is None:
            continue
        output = _real(one.output)
        if inside := next((paths[place] for place in (output, *output.parents) if place in paths), None):
            raise UsageError(f"{one.output} lies inside the submission {inside.path}; keep them apart")
        if other := outputs.get(output):
            raise UsageError(f"{one.output}: the output of both {other.path} and {one.path}; give each its own")
        outputs[output] = one


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
