"""Evaluation of locked runs: the plan, the events of its jobs, and the files that are written at the end."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from slop_code.errors import UsageError
from slop_code.evaluation.policy import PassPolicy, Policy
from slop_code.evaluation.result_files.foreign_files import rename_or_refuse
from slop_code.evaluation.result_files.origin import ORIGIN_FILE, Origin, environment_reference, keep_origin
from slop_code.evaluation.result_files.replace_result import OTHER_FOLDER, finish_replacement
from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine
from slop_code.runs.executors import executor_class, is_remote
from slop_code.runs.folders.foreign_guard import common_folder, foreign_files, foreign_summary_files, writes_summary
from slop_code.runs.folders.run_lock import lock_common, lock_runs
from slop_code.runs.jobs.job_records import SubmissionOutcome
from slop_code.runs.jobs.plan import make_plan, part_of_runs
from slop_code.runs.jobs.run_control import Retries, RunControl
from slop_code.runs.result_cache import ResultCache
from slop_code.runs.result_index import ResultIndex
from slop_code.runs.run_layout import SNAPSHOT
from slop_code.runs.run_lines import lines_of
from slop_code.runs.scb.agent_facts import read_agent_identity
from slop_code.runs.summary import STORED_POLICIES, summarise, write_summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from slop_code.execution.cache import Cache
    from slop_code.execution.progress_events import ProgressCallback, ProgressEvent
    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.executors import Executor
    from slop_code.runs.jobs.job_records import RunEvent, Submission, SubmissionKey
    from slop_code.runs.jobs.plan import Plan, Shard
    from slop_code.runs.summary import RunSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Settings of an evaluation of runs; none of them changes a verdict."""

    workers: int | None = None
    """Jobs at a time, or None for as many as processors."""

    executor: str = "threads"
    address: str | None = None
    """Address of the executor's cluster."""

    retries: Retries = field(default_factory=Retries)
    overwrite: bool = False
    shard: Shard | None = None
    partial: bool = False
    """Only some problems of the runs are evaluated: no summary is written, as it would replace that of all."""

    samples: bool = False
    """The runs are samples of the same agent: their common summary has estimates."""

    pytest_args: tuple[str, ...] = ()
    """Arguments that select a part of the tests: results have no verdict, and belong in a folder outside the runs."""

    unchanged: Callable[[Submission], bool] | None = None
    """Whether a submission is still the one of the plan, for runs that an agent still works on: see the scheduler."""

    foreign_step: str | None = OTHER_FOLDER
    """What the user can do about files of other programs in the place of results, before anything is evaluated.

    If it is None, they are renamed.
    """

    output: Path | None = None
    """The folder of the mirrored tree, for the common summary of several runs."""

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"workers: expected at least 1, found {self.workers}")

    @property
    def whole_runs(self) -> bool:
        """True if all checkpoints and all tests are evaluated, so that a summary is written."""
        return self.shard is None and not self.partial and not self.pytest_args


@dataclass(frozen=True, slots=True)
class RunEvaluation:
    """Runs that are locked, and the plan of their evaluation."""

    runs: Sequence[DiscoveredRun]
    plan: Plan
    settings: RunSettings
    cache: Cache
    result_cache: ResultCache
    indexes: dict[str, ResultIndex]
    release_warnings: dict[str, list[str]] = field(default_factory=dict)
    """By run; see there."""

    facts: dict[SubmissionKey, CheckpointFacts] = field(default_factory=dict)
    """Facts of finished submissions; those of submissions that were up to date are there from the start."""

    tests_done: dict[tuple[str, str, str], ProgressEvent] = field(default_factory=dict)
    """Counts of tests while they run, as far as they are known; by the real path of the submission, problem and
    checkpoint. For progress alone."""

    def note_tests_done(self, event: ProgressEvent) -> None:
        """Any thread may call this."""
        self.tests_done[event.name, event.problem, event.checkpoint] = event

    def __post_init__(self) -> None:
        self.facts.update({submission.key: facts for submission, facts in self.plan.up_to_date})

    @contextlib.contextmanager
    def executor(
        self, progress: ProgressCallback = lambda _: None, control: RunControl | None = None
    ) -> Iterator[Executor]:
        """An executor, prepared for the plan. Raises EvaluationCancelledError where the control is stopped before."""
        settings = self.settings
        executor = executor_class(settings.executor)(settings.workers, settings.address, progress, self.cache)
        try:
            with (control or RunControl()).cancel_scope():
                executor.prepare([job.targets[0] for job in self.plan.jobs if not job.cached])
            yield executor
        finally:
            executor.close()
            self.result_cache.trim()

    def remember_origins(self, environment: str | None) -> None:
        """Stores where the problems are, for the next evaluation and for `rerun`. `environment`: name or path."""
        reference = environment_reference(environment)
        for run in self.runs:
            problems = {item.output.parent: item.problem.path.absolute() for item in run.submissions if item.output}
            if run.source is not None:
                _make_folders([item.output for item in run.submissions if item.output])
            for folder, problem in problems.items() if run.folder else ():
                Origin(problem=str(problem), environment=reference).keep(folder)
            for item in run.submissions:
                if run.folder and item.output and _has_origin(item.output, item.path):
                    own = str(item.environment.file) if item.environment.file else None
                    keep_origin(item.output, item.problem, environment or own, item.path)
            parents = {problem.parent for problem in problems.values()}
            if run.folder and run.within is None and len(parents) == 1:
                Origin(problems_dir=str(parents.pop()), environment=reference).keep(run.folder)

    def outcomes_without_jobs(self) -> Iterator[SubmissionOutcome]:
        """Outcomes of submissions that cannot be evaluated, and of those whose results are up to date."""
        for submission, reason in self.plan.rejected:
            yield SubmissionOutcome(submission, CheckpointFacts.no_verdict(reason), "rejected")
        for submission, facts in self.plan.up_to_date:
            yield SubmissionOutcome(submission, facts, "up_to_date")

    def events(self, executor: Executor, control: RunControl) -> Iterator[RunEvent]:
        """The events of all jobs, as they happen. Closing the generator cancels running jobs."""
        from slop_code.runs.jobs.scheduler import SchedulerContext, run_jobs  # a run with nothing to do needs neither

        context = SchedulerContext(
            executor=executor,
            result_cache=self.result_cache,
            control=control,
            retries=self.settings.retries,
            overwrite=self.settings.overwrite,
            hidden=self._hidden_folders(),
            remote=is_remote(self.settings.executor),
            unchanged=self.settings.unchanged,
            foreign_step=self.settings.foreign_step,
        )
        jobs = [replace(job, pytest_args=self.settings.pytest_args) for job in self.plan.jobs]
        with contextlib.closing(run_jobs(jobs, context)) as events:
            for event in events:
                if isinstance(event, SubmissionOutcome):
                    self.facts[event.submission.key] = event.facts
                yield event

    def _hidden_folders(self) -> tuple[Path, ...]:
        """Folders of results. A box hides only folders that exist when it starts, so they are made now."""
        outputs = [
            submission.output
            for run in self.runs
            for submission in run.submissions
            if submission.output and not (run.folder and submission.output.is_relative_to(run.folder))
        ]
        _make_folders(outputs)
        runs = [folder for run in self.runs for folder in (run.folder, run.source) if folder]
        return tuple(folder.absolute() for folder in (*runs, *outputs))

    def conclude(self, policy: Policy = PassPolicy.ALL_CASES) -> tuple[list[CheckpointLine], RunSummary]:
        """The lines and the summary of all runs. Those of each run are written into its folder.

        The written summaries have the policies with names; the returned summary has `policy` as well.
        """
        lines: list[CheckpointLine] = []
        written: list[RunSummary] = []
        identities = {run.name: read_agent_identity(run.input_folder) for run in self.runs if run.input_folder}
        agents = {name: identity for name, identity in identities.items() if identity.is_known}
        for run in self.runs:
            if run.folder is None:
                continue
            run_lines = lines_of(run, self.plan, self.facts, self.indexes[run.name])
            lines += run_lines
            if writes_summary(run, self.settings):
                issues = [issue for issue in self.plan.issues if issue.run == run.name]
                own = {name: agent for name, agent in agents.items() if name == run.name}
                self._make_room(run.folder)
                written.append(
                    write_summary(run.folder, run_lines, issues, agents=own, warnings=self.release_warnings[run.name])
                )
            with contextlib.suppress(OSError):  # the index only speeds up the next evaluation
                self.indexes[run.name].save()
        if len(self.runs) == 1 and len(written) == 1 and policy in STORED_POLICIES:
            return lines, written[0]
        policies = tuple(dict.fromkeys((*STORED_POLICIES, policy)))
        samples = self.settings.samples and not self.settings.shard
        warnings = [warning for run in self.runs for warning in self.release_warnings[run.name]]
        if (folder := common_folder(self.runs, self.settings)) is not None:
            relative = _relative_to(folder, lines, self.runs)
            self._make_room(folder)
            write_summary(folder, relative, self.plan.issues, samples=samples, agents=agents, warnings=warnings)
        return lines, summarise(lines, self.plan.issues, policies, samples=samples, agents=agents, warnings=warnings)

    def _make_room(self, folder: Path) -> None:
        """Another program may have written its own summary since the evaluation began."""
        rename_or_refuse(foreign_summary_files(folder), self.settings.foreign_step)


def _has_origin(output: Path, snapshot: Path) -> bool:
    """A snapshot in its usual place is found there, unless an earlier evaluation was of another one."""
    return snapshot != output / SNAPSHOT or os.path.lexists(output / ORIGIN_FILE)


def _make_folders(outputs: Sequence[Path]) -> None:
    for output in outputs:
        with contextlib.suppress(OSError):  # reported when the result is written
            output.mkdir(parents=True, exist_ok=True)


def _relative_to(folder: Path, lines: Sequence[CheckpointLine], runs: Sequence[DiscoveredRun]) -> list[CheckpointLine]:
    """Lines of several runs with the paths of their results relative to `folder`."""
    folders = {run.name: run.folder for run in runs}

    def relative(line: CheckpointLine) -> str | None:
        run = folders[line.run]
        return os.path.relpath(run / line.evaluation, folder) if line.evaluation and run else line.evaluation

    return [CheckpointLine.model_validate({**dict(line), "evaluation": relative(line)}) for line in lines]


@contextlib.contextmanager
def open_runs(
    runs: Sequence[DiscoveredRun],
    cache: Cache,
    settings: RunSettings,
    *,
    lock: bool = True,
    before_plan: Callable[[DiscoveredRun], DiscoveredRun] = lambda run: run,
) -> Iterator[RunEvaluation]:
    """With `lock`, no other evaluator may use these folders meanwhile. A dry run needs no lock.

    `before_plan` is called with each run once it is locked. Files of other programs in the place of results are a
    UsageError, before anything is written, or are renamed.
    """
    result_cache = ResultCache(cache)
    indexes = {run.name: ResultIndex.load(run.folder) for run in runs}
    foreign = foreign_files(runs, settings, indexes)
    if settings.foreign_step is not None:
        rename_or_refuse(foreign, settings.foreign_step)  # before the lock, which is a file in the run
    with contextlib.ExitStack() as stack:
        if lock:
            stack.enter_context(cache.shared_lock())
            stack.enter_context(lock_common(common_folder(runs, settings)))
            runs = stack.enter_context(lock_runs(runs, settings.shard))
            rename_or_refuse(foreign_files(runs, settings, indexes), settings.foreign_step)  # as they are now
            _finish_replacements(runs, settings.shard)
        else:
            for index in indexes.values():
                index.ignored.update(foreign)
        locked = [before_plan(run) for run in runs]
        remote = is_remote(settings.executor)
        plan = make_plan(
            locked, result_cache, indexes, overwrite=settings.overwrite, shard=settings.shard, remote=remote
        )
        release = {run.name: run.release_warnings for run in locked}
        yield RunEvaluation(locked, plan, settings, cache, result_cache, indexes, release)


def _finish_replacements(runs: Sequence[DiscoveredRun], shard: Shard | None) -> None:
    """Only in folders of this shard: in those of others, a replacement may be under way."""
    submissions, issues = part_of_runs(runs, shard)
    for output in (*(submission.output for submission in submissions), *(issue.output for issue in issues)):
        with contextlib.suppress(OSError):  # reported when a result is written
            if output is not None:
                finish_replacement(output)
