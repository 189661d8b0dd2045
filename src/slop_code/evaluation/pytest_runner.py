"""`PytestRunner`: the evaluation of one checkpoint of a submission."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code._arguments import check_path
from slop_code._io import read_bounded
from slop_code._safe_text import NAME_LIMIT, escape_control
from slop_code._verbose_log import verbose_log
from slop_code.errors import InfrastructureError, SlowSetupError, SubmissionSetupError, UsageError
from slop_code.evaluation.command import PLUGIN, check_pytest_args, pytest_command, render_ini
from slop_code.evaluation.config import AUTO
from slop_code.evaluation.context import EvaluationContext, ignore_progress
from slop_code.evaluation.evaluation_state import EvaluationState
from slop_code.evaluation.evidence import REPORT_LIMIT, Evidence
from slop_code.evaluation.grading import Grade, GradingRules, grade
from slop_code.evaluation.groups import BUILTIN_MARKERS, GroupType, checked_group_for, group_of_ctrf_test
from slop_code.evaluation.input_checks import submission_change, tree_after_tests
from slop_code.evaluation.parallel.divide_tests import DividedTests, divide_tests
from slop_code.evaluation.parallel.test_durations import store_durations
from slop_code.evaluation.provenance import platform_name
from slop_code.evaluation.pytest_arguments import PytestArguments, chosen_tests, parse_pytest_args
from slop_code.evaluation.reports.ctrf_report import parse_ctrf
from slop_code.evaluation.result_files.evidence_files import CTRF_REPORT, remove_evidence
from slop_code.evaluation.roster import Roster, assign_only
from slop_code.evaluation.run_tests import (
    PytestSettings,
    keep_collection,
    keep_evidence,
    keep_setup_failure,
    read_reports,
    repeat_setup,
    run_pairs,
    sessions_for,
)
from slop_code.evaluation.selection import Selection, checkpoint_files, select
from slop_code.evaluation.staging import CollectionError, Staged, StagingPlan, copy_tests, stage, variables_for
from slop_code.evaluation.usage.repeat_tests import Repeater
from slop_code.execution.cache import Cache
from slop_code.execution.cancellation import deadline
from slop_code.execution.concurrency import start_thread
from slop_code.execution.processors import processor_places
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.execution.sandbox import REPORTS_DIR, TESTS_DIR
from slop_code.execution.session import Session
from slop_code.execution.submission import open_submission, read_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from slop_code.evaluation.config import CheckpointConfig, MarkerConfig, ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.evaluation.reports.raw_test import ParsedReport, RawTest
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.execution.submission import SubmissionTree
    from slop_code.execution.templates import TemplatePool

__all__ = ["BUILTIN_MARKERS", "PytestRunner", "prepare_tests", "run_checkpoint_pytest"]

_log = logging.getLogger("slop_code.evaluation")


class PytestRunner:
    def __init__(
        self,
        problem: ProblemConfig,
        checkpoint: CheckpointConfig,
        environment: EnvironmentSpec,
        submission_path: Path | str,
        *,
        output_dir: Path | None = None,
        cache: Cache | None = None,
        progress: ProgressCallback = ignore_progress,
        max_pairs: int | None = None,
        hidden: Sequence[Path] = (),
        only: Sequence[str] | None = None,
        follow: Callable[[bytes], None] | None = None,
        seed: int | None = None,
        interactive: bool = False,
        repeat_starved: bool = True,
        alone: bool = False,
        verbose: bool = False,
        unsent: SubmissionTree | None = None,
        templates: TemplatePool | None = None,
    ) -> None:
        """With `output_dir`, the evidence is kept in `.scbench` there.

        `max_pairs` bounds what the problem asks for with `parallel`. The submission sees nothing of `hidden`.
        `only`: the tests to run (`file::id`), in a single pair. The others count as deselected, so there is no verdict.
        `follow` gets the output of pytest as it is printed. `seed` shuffles the tests, and seeds `random` in them.
        `interactive`: pytest reads this process's standard input, and there is no session timeout.
        `repeat_starved`: tests for which the machine had no processor or no memory run again, alone.
        `alone`: no other evaluation with this cache runs tests meanwhile.
        `verbose`: the logger `slop_code` logs every step, to standard error if it has no handler.
        `unsent`: a submission beyond the limits on another machine. The folder here is empty.
        `templates`: judges are forked from these where possible, with the same results.
        """
        self.problem = problem
        self.checkpoint = checkpoint
        self.environment = environment
        self.submission_path = check_path("submission_path", submission_path, "the path of the submission's folder")
        self.output_dir = output_dir
        self.cache = cache or Cache.default()
        self.progress = progress
        self.max_pairs = max_pairs
        self.hidden, self.only = hidden, only
        self.follow, self.seed, self.interactive = follow, seed, interactive
        self.repeat_starved, self.alone = repeat_starved and not interactive, alone
        self.verbose, self.unsent, self.templates = verbose, unsent, templates
        self.workspace: Path | None = None
        """The workspace of the last call of `_copy_tests_from_problem`."""
        self._context = self._new_context()

    def run(self, pytest_args: Sequence[str] | None = None) -> CorrectnessResults:
        """Never raises for failures of the submission, the sandbox or pytest. Raises on cancellation."""
        arguments = check_pytest_args(() if pytest_args is None else pytest_args)
        submission = open_submission(self.submission_path)
        self.check_folders()
        self._context = self._new_context()
        platform = start_thread(platform_name)
        tree = start_thread(lambda: self.unsent or read_tree(submission))
        state = EvaluationState(self._context, submission, arguments, tree)
        with verbose_log(self.verbose):
            try:
                seconds = self.environment.timeouts.evaluation
                late = f"the evaluation did not end within the {seconds} s of timeouts.evaluation"
                with self.cache.shared_lock(), deadline(seconds, late), processor_places(self.cache) as take_places:
                    self._prepare(state, take_places)
                    self._set_up_and_run_tests(state)
                    state.keep_inputs(self.output_dir)
            except (InfrastructureError, OSError) as error:
                state.evidence, state.repeats = [Evidence.of_failure(error, state.roster)], []
                state.permanent = isinstance(error, CollectionError) and error.permanent
                with contextlib.suppress(OSError):
                    remove_evidence(self.output_dir)
                    keep_collection(self.output_dir, error)
            state.stopwatch.lap("parse")
            graded = self._grade(state, state.repeats)
            _log.info("graded %d tests: %s", len(graded.tests), graded.infrastructure_failure_reason or "a verdict")
        platform()
        results = state.results(graded)
        if self.problem.parallel == AUTO:
            store_durations(self.cache, results)
        return results

    def _prepare(self, state: EvaluationState, take_places: Callable[[int], int]) -> None:
        sandbox = self._context.sandbox
        state.image = sandbox.image()
        state.python = sandbox.subject_version() if self.environment.interpreter() else None
        arguments = parse_pytest_args(state.arguments)
        state.command = self._build_pytest_command(arguments.options)
        state.staged = self._stage_tests()
        divided = self._assign_tests(state.staged, arguments, take_places)
        state.roster, state.serial_reason = divided.roster, divided.serial_reason
        if divided.serial_reason is not None:
            _log.info("one pair runs all tests: %s", divided.serial_reason)
        state.stopwatch.lap("prepare")

    def _set_up_and_run_tests(self, state: EvaluationState) -> None:
        if (over_limit := state.tree().over_limit) is not None:
            state.stopwatch.lap("setup")
            state.roster, state.evidence = keep_setup_failure(self.output_dir, state.roster, over_limit)
            return
        try:
            try:
                after = self._run_tests(state)
            except SlowSetupError as slow:
                _log.info("repeating set-up, alone: %s", slow)
                repeat_setup(self.cache, self._opening(state))
                after = self._run_tests(state)
        except SubmissionSetupError as error:
            state.stopwatch.lap("setup")
            after = start_thread(tree_after_tests, state.context, state.staged, state.submission)
            state.roster, state.evidence = keep_setup_failure(self.output_dir, state.roster, str(error))
        changed = submission_change(state.submission, state.tree, after)
        # If there is already another infrastructure failure, its reason is the one to report.
        if changed and self._grade(state, state.repeats).infrastructure_failure_reason is None:
            raise changed

    def _run_tests(self, state: EvaluationState) -> Callable[[], SubmissionTree]:
        """Opens the boxes, runs the tests in them, reads and keeps the evidence; returns the submission afterwards."""
        context, roster = state.context, state.roster
        assert state.staged is not None
        settings = PytestSettings(
            context, state.staged, state.command, self.follow, self.seed, self.interactive, self.templates
        )
        opening = self._opening(state)
        lock = self.cache.running_lock(alone=self.alone)
        with lock, opening() as session, sessions_for(session, roster.pairs) as sessions:
            state.stopwatch.lap("setup")
            count = sum(entry.pair is not None for entry in roster.entries)
            self.progress(ProgressEvent(ProgressKind.RUN_TESTS, count=count, total=roster.pairs))
            _log.info("running %d tests in %d pair(s): %s", count, roster.pairs, shlex.join(state.command))
            ended = run_pairs(settings, sessions, roster)
            state.stopwatch.lap("tests")
            after = start_thread(tree_after_tests, context, state.staged, state.submission)
            state.evidence = read_reports(ended, sessions, self._parse_ctrf)
            for pair in state.evidence:
                _log.info("%s: %s, tests from %s", pair.folder, pair.exit, pair.source)
            remove_evidence(self.output_dir)  # not before: a cancelled evaluation leaves an earlier one as it was
            keep_evidence(self.output_dir, sessions, state.evidence, roster)
        if self.repeat_starved:
            repeater = Repeater(settings, opening, self.output_dir, self._parse_ctrf)
            state.repeats = repeater.run(roster, functools.partial(self._grade, state))
            state.stopwatch.lap("tests")
        if state.repeats:
            after = start_thread(tree_after_tests, context, state.staged, state.submission)
        return after

    def _opening(self, state: EvaluationState) -> Callable[[], AbstractContextManager[Session]]:
        entry = state.context.environment.entry(self.problem.entry_file)[-1]
        return functools.partial(Session.open, state.context.sandbox, state.submission, self._hidden(), entry)

    def _new_context(self) -> EvaluationContext:
        return EvaluationContext(self.problem, self.checkpoint, self.environment, self.cache, self.progress)

    def _stage_tests(self) -> Staged:
        """Collects the tests without the pytest arguments of this evaluation."""
        return stage(self._context, self._staging_plan())

    def _staging_plan(self) -> StagingPlan:
        copied = ""
        if type(self)._copy_tests_from_problem is not PytestRunner._copy_tests_from_problem:
            with self.cache.session_folder() as folder:
                self._copy_tests_from_problem(folder)
                copied = read_tree(folder / TESTS_DIR).digest
        command = self._build_pytest_command()
        copy = self._copy_tests_from_problem
        return StagingPlan(self._selection(), self._generate_pytest_ini(), command, copy, copied)

    def _selection(self) -> Selection:
        names = self._get_test_files(self.checkpoint.name, self.checkpoint.include_prior_tests)
        return select(self.problem.path / "tests", list(self.problem.checkpoints), names)

    def _assign_tests(
        self, staged: Staged, arguments: PytestArguments, take_places: Callable[[int], int]
    ) -> DividedTests:
        roster = staged.roster
        location = f"{self.problem.name} {self.checkpoint.name}"
        chosen = chosen_tests(roster, arguments, self._rules().group_of_entry, location)
        if self.only is not None:
            if missing := [name for name in self.only if name not in roster.nodeids]:
                gone = f"{escape_control(missing[0], NAME_LIMIT)} is no longer among the tests"
                raise UsageError(f"{location}: {gone}; run the checkpoint again as a whole")
            chosen = list(self.only)
        if chosen is not None:
            take_places(1)
            return DividedTests(assign_only(roster, frozenset(chosen)))
        return divide_tests(
            self._context,
            staged,
            arguments.options,
            max_pairs=self.max_pairs,
            seed=self.seed,
            take_places=take_places,
        )

    def check_folders(self) -> None:
        """Raises UsageError if the submission cannot be read, or has the problem, the cache or the output in it."""
        submission = open_submission(self.submission_path)
        if self.problem.path.resolve() == submission:
            step = "give the folder that holds the submission's files"
            raise UsageError(f"{self.submission_path}: this is the problem's folder, not a submission; {step}")
        for path in self._hidden():
            if Path(os.path.realpath(path)).is_relative_to(submission):  # `resolve` fails for a link to itself
                raise UsageError(f"{path} lies inside the submission {submission}; keep them apart")

    def _hidden(self) -> list[Path]:
        output = [self.output_dir] if self.output_dir else []
        return [self.problem.path, self.cache.root, *output, *self.hidden]

    def _grade(self, state: EvaluationState, repeats: Sequence[Evidence]) -> Grade:
        return grade(state.evidence, state.roster, self._rules(state.arguments), repeats)

    def _rules(self, arguments: Sequence[str] = ()) -> GradingRules:
        names = list(self.problem.checkpoints)
        return GradingRules(names, self.checkpoint.name, self._determine_group_type, arguments)

    def _get_test_files(self, checkpoint_name: str, include_prior_tests: bool) -> list[str]:
        """The files of the tests folder to copy: the checkpoint's tests, those of prior ones, then all others."""
        tests, ordered = self.problem.path / "tests", list(self.problem.checkpoints)
        return checkpoint_files(tests, ordered, checkpoint_name, include_prior_tests)

    def _copy_tests_from_problem(self, workspace: Path | None = None) -> list[str]:
        """Copies the tests with all their files to `.evaluation_tests` of the workspace; returns the files to run.

        Without a workspace, `self.workspace` is a new temporary folder, which the caller removes.
        """
        self.workspace = workspace or Path(tempfile.mkdtemp(prefix="slop-code-"))
        selection = self._selection()
        copy_tests(self.problem, selection, self._generate_pytest_ini(), self.workspace / TESTS_DIR)
        return list(selection.run)

    def _generate_pytest_ini(self) -> str:
        return render_ini(self.problem.markers, self._selection().run)

    def _build_pytest_command(self, pytest_args: Sequence[str] = ()) -> list[str]:
        return pytest_command(self._context, pytest_args)

    def command_by_hand(self, pytest_args: Sequence[str] = ()) -> list[str]:
        """The same command without boxes, to be run by hand in a copy of the submission."""
        bare = replace(
            self._context, environment=self.environment.model_copy(update={"type": "local", "isolation": "none"})
        )
        plan = replace(self._staging_plan(), command=pytest_command(bare))
        staged = stage(bare, plan)
        tests, arguments = str(staged.tests), parse_pytest_args(pytest_args)
        command = pytest_command(bare, arguments.options, tests)
        if (chosen := chosen_tests(staged.roster, arguments, self._rules().group_of_entry, "here")) is not None:
            command[-1:] = [f"{tests}/{name}" for name in chosen]
        plugin = command.index(PLUGIN)
        modules = f"{staged.plugin}:." if self.problem.in_process else str(staged.plugin)
        own = {"UV_CACHE_DIR": str(self.cache.uv), "PYTHONPATH": modules}
        variables = {**own, **variables_for(self.problem, self.checkpoint, tests)}
        settings = [f"{name}={value}" for name, value in variables.items()]
        return ["env", *settings, *command[: plugin - 1], *command[plugin + 1 :]]

    def _parse_ctrf_report(self, report: bytes | None = None) -> list[RawTest]:
        """Parses the given report, or the report of `run()` in the output folder."""
        if report is None:
            if self.output_dir is None:
                raise UsageError("no CTRF report: give its content, or an output_dir and call run() first")
            path = self.output_dir / REPORTS_DIR / CTRF_REPORT
            try:
                report = read_bounded(path, REPORT_LIMIT)
            except OSError as error:
                raise UsageError(f"{path}: cannot be read: {error.strerror}; call run() first") from error
        return list(parse_ctrf(report).tests)

    def _parse_ctrf(self, report: bytes) -> ParsedReport:
        return replace(parse_ctrf(report), tests=tuple(self._parse_ctrf_report(report)))

    def _determine_group_type(
        self,
        test_checkpoint: str | Mapping[str, Any],
        markers: Sequence[str] | str,
        current_checkpoint: str | Mapping[str, MarkerConfig],
    ) -> GroupType:
        """May also be called as `(test, checkpoint_name, custom_markers)` with an entry of a CTRF report."""
        ordered = list(self.problem.checkpoints)
        if isinstance(test_checkpoint, Mapping):
            return group_of_ctrf_test(test_checkpoint, markers, current_checkpoint, ordered)
        return checked_group_for(test_checkpoint, markers, current_checkpoint, self.problem.custom_groups, ordered)


def prepare_tests(context: EvaluationContext) -> tuple[Roster, Mapping[str, str]]:
    """The roster, and the versions of the test tools; both are cached."""
    runner = PytestRunner(
        context.problem, context.checkpoint, context.environment, Path(), cache=context.cache, progress=context.progress
    )
    with context.cache.shared_lock():
        return runner._stage_tests().roster, runner._context.tools.versions


def run_checkpoint_pytest(
    submission_path: Path | str,
    problem: ProblemConfig,
    checkpoint: CheckpointConfig,
    env_spec: EnvironmentSpec,
    pytest_args: Sequence[str] | None = None,
    *,
    output_dir: Path | None = None,
    cache: Cache | None = None,
    progress: ProgressCallback = ignore_progress,
    max_pairs: int | None = None,
    hidden: Sequence[Path] = (),
    verbose: bool = False,
) -> CorrectnessResults:
    """The keyword arguments are those of `PytestRunner`."""
    runner = PytestRunner(
        problem,
        checkpoint,
        env_spec,
        submission_path,
        output_dir=output_dir,
        cache=cache,
        progress=progress,
        max_pairs=max_pairs,
        hidden=hidden,
        verbose=verbose,
    )
    return runner.run(pytest_args)
