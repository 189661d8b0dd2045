"""`PytestRunner`: a checkpoint of a submission, from its tests to its results."""

from __future__ import annotations

import contextlib
import logging
import shlex
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code._io import read_bounded
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.command import PLUGIN, pytest_command, render_ini
from slop_code.evaluation.context import EvaluationContext, ignore_progress
from slop_code.evaluation.evidence import CTRF_REPORT, REPORT_LIMIT, Evidence, weakest_isolation
from slop_code.evaluation.grading import Grade, GradingRules, grade
from slop_code.evaluation.groups import BUILTIN_MARKERS, GroupType, group_for, group_of_ctrf_test
from slop_code.evaluation.infrastructure import submission_change
from slop_code.evaluation.provenance import platform_name, provenance_of, warnings_for
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.reports.ctrf_report import parse_ctrf
from slop_code.evaluation.reports.raw_test import NAME_LIMIT, ParsedReport, RawTest, visible
from slop_code.evaluation.roster import Roster, assign_only, assign_pairs, max_pairs_for
from slop_code.evaluation.run_tests import (
    PytestJob,
    keep_evidence,
    read_reports,
    remove_evidence,
    run_pairs,
    sessions_for,
)
from slop_code.evaluation.selection import Selection, checkpoint_files, select
from slop_code.evaluation.staging import Staged, StagingPlan, copy_tests, stage, variables_for
from slop_code.execution.cache import DAMAGE_ERRORS, Cache
from slop_code.execution.concurrency import start_thread
from slop_code.execution.manifest import check_manifest
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.execution.sandbox import REPORTS_DIR, TESTS_DIR
from slop_code.execution.session import Session
from slop_code.execution.submission import open_submission, read_tree
from slop_code.execution.tool_environment import read_tool_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slop_code.evaluation.config import CheckpointConfig, MarkerConfig, ProblemConfig
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.execution.submission import SubmissionTree

__all__ = ["BUILTIN_MARKERS", "PytestRunner", "prepare_tests", "run_checkpoint_pytest"]

_log = logging.getLogger("slop_code.evaluation")


class _Stopwatch:
    def __init__(self) -> None:
        self.phases: dict[str, float] = {"prepare": 0.0, "setup": 0.0, "tests": 0.0, "parse": 0.0}
        self.began = self.last = time.monotonic()

    def lap(self, phase: str) -> None:
        now = time.monotonic()
        self.phases[phase] += now - self.last
        self.last = now


@dataclass(slots=True)
class _Run:
    """What is known so far; an evaluation that breaks off reports what it has."""

    context: EvaluationContext
    submission: Path
    arguments: list[str]
    tree: Callable[[], SubmissionTree]
    """The submission before the tests."""

    watch: _Stopwatch = field(default_factory=_Stopwatch)
    image: str | None = None
    command: list[str] = field(default_factory=list)
    staged: Staged | None = None
    roster: Roster = field(default_factory=lambda: Roster(()))
    evidence: list[Evidence] = field(default_factory=list)


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
        verbose: bool = False,
    ) -> None:
        """With `output_dir`, the evidence is kept in `.scbench` there.

        `max_pairs` bounds what the problem asks for with `parallel`. The submission sees nothing of `hidden`.
        `only`: the tests to run (`file::id`), in a single pair; the others count as deselected, so there is no verdict.
        `follow` is given what pytest prints, as it is printed. `seed` decides a random order, and the chance in tests.
        `interactive`: pytest reads this process's standard input, and there is no session timeout.
        `verbose`: the logger `slop_code` writes every step, to standard error where no handler is set.
        """
        self.problem = problem
        self.checkpoint = checkpoint
        self.environment = environment
        self.submission_path = Path(submission_path)
        self.output_dir = output_dir
        self.cache = cache or Cache.default()
        self.progress = progress
        self.max_pairs = max_pairs
        self.hidden = hidden
        self.only = only
        self.follow = follow
        self.seed = seed
        self.interactive = interactive
        self.verbose = verbose
        self.workspace: Path | None = None
        """Of the last call of `_copy_tests_from_problem`."""
        self._context = self._new_context()

    def run(self, pytest_args: Sequence[str] | None = None) -> CorrectnessResults:
        """What the submission, the sandbox or pytest do is in the result, and raises nothing. A cancellation raises."""
        submission = open_submission(self.submission_path)
        self.keep_apart()
        self._context = self._new_context()
        platform = start_thread(platform_name)
        run = _Run(self._context, submission, list(pytest_args or ()), start_thread(read_tree, submission))
        with _verbose_log(self.verbose):
            try:
                with self.cache.shared_lock():
                    remove_evidence(self.output_dir)
                    self._prepare(run)
                    self._run_tests(run)
            except (InfrastructureError, OSError) as error:
                run.evidence = [Evidence.of_failure(error, run.roster)]
            run.watch.lap("parse")
            graded = self._grade(run)
            _log.info("graded %d tests: %s", len(graded.tests), graded.infrastructure_failure or "a verdict")
        platform()
        return self._results(run, graded)

    def _prepare(self, run: _Run) -> None:
        run.image = self._context.sandbox.image()
        run.command = self._build_pytest_command(run.arguments)
        run.staged = self._stage_tests()
        run.roster = self._assign_tests(run.staged.roster, run.arguments)
        run.watch.lap("prepare")

    def _run_tests(self, run: _Run) -> None:
        """The tests in their boxes, and the evidence they leave."""
        context, roster = run.context, run.roster
        assert run.staged is not None
        job = PytestJob(context, run.staged, run.command, self.follow, self.seed, self.interactive)
        opening = Session.open(context.sandbox, run.submission, self._hidden())
        with opening as session, sessions_for(session, roster.pairs) as sessions:
            run.watch.lap("setup")
            count = sum(entry.pair is not None for entry in roster.entries)
            self.progress(ProgressEvent(ProgressKind.RUN_TESTS, count=count, total=roster.pairs))
            _log.info("running %d tests in %d pair(s): %s", count, roster.pairs, shlex.join(run.command))
            ended = run_pairs(job, sessions, roster)
            run.watch.lap("tests")
            after = start_thread(_read_again, run)
            run.evidence = read_reports(ended, sessions, self._parse_ctrf)
            for pair in run.evidence:
                _log.info("%s: %s, tests from %s", pair.folder, pair.exit, pair.source)
            keep_evidence(self.output_dir, sessions, run.evidence, roster)
        changed = submission_change(run.submission, run.tree, after)
        # Where there is no verdict anyway, the reason for that came first.
        if changed and self._grade(run).infrastructure_failure is None:
            remove_evidence(self.output_dir)
            raise changed

    def _new_context(self) -> EvaluationContext:
        return EvaluationContext(self.problem, self.checkpoint, self.environment, self.cache, self.progress)

    def _stage_tests(self) -> Staged:
        """Collected without any of an evaluation's own arguments."""
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

    def _assign_tests(self, roster: Roster, arguments: Sequence[str]) -> Roster:
        if self.only is None:
            most = max_pairs_for(self.problem, self.environment, arguments)
            return assign_pairs(roster, self.problem.parallel_by, min(most, self.max_pairs or most))
        known = roster.nodeids
        if gone := [name for name in self.only if name not in known]:
            location, name = f"{self.problem.name} {self.checkpoint.name}", visible(gone[0], NAME_LIMIT)
            raise UsageError(f"{location}: {name} is no longer among the tests; run the checkpoint again as a whole")
        return assign_only(roster, frozenset(self.only))

    def keep_apart(self) -> None:
        """Refuses a problem, a cache or an output inside the submission's folder, where the submission can read it."""
        submission = open_submission(self.submission_path)
        for path in self._hidden():
            if path.resolve().is_relative_to(submission):
                raise UsageError(f"{path} lies inside the submission {submission}; keep them apart")

    def _hidden(self) -> list[Path]:
        output = [self.output_dir] if self.output_dir else []
        return [self.problem.path, self.cache.root, *output, *self.hidden]

    def _grade(self, run: _Run) -> Grade:
        names = list(self.problem.checkpoints)
        rules = GradingRules(names, self.checkpoint.name, self._determine_group_type, run.arguments)
        return grade(run.evidence, run.roster, rules)

    def _results(self, run: _Run, graded: Grade) -> CorrectnessResults:
        tree = None
        with contextlib.suppress(InfrastructureError):  # that is why there is no verdict, if there is no other reason
            tree = run.tree()
        return CorrectnessResults(
            problem_name=self.problem.name,
            checkpoint_name=self.checkpoint.name,
            duration=time.monotonic() - run.watch.began,
            tests=graded.tests,
            pytest_exit_code=graded.exit_code,
            infrastructure_failure_reason=graded.infrastructure_failure,
            isolation=weakest_isolation(run.evidence),
            deselected=graded.deselected,
            phases=run.watch.phases,
            provenance=provenance_of(
                run.context,
                submission=tree.digest if tree else None,
                image=run.image,
                tests=run.staged.digest if run.staged else None,
                command=run.command,
                pytest_args=run.arguments,
            ),
            evidence=graded.source,
            warnings=warnings_for(run.context, self.submission_path, run.staged, tree),
        )

    def _get_test_files(self, checkpoint_name: str, include_prior_tests: bool) -> list[str]:
        """The files of the tests folder to copy: the checkpoint's tests, those of prior ones, then all others."""
        tests, ordered = self.problem.path / "tests", list(self.problem.checkpoints)
        return checkpoint_files(tests, ordered, checkpoint_name, include_prior_tests)

    def _copy_tests_from_problem(self, workspace: Path | None = None) -> list[str]:
        """The names of the test files that will run, copied with all they need to `.evaluation_tests` of the workspace.

        Without a workspace, `self.workspace` is a new temporary folder, for the caller to remove.
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
        """The same command for a person's own shell, to be run in a copy of the submission: no boxes."""
        bare = replace(
            self._context, environment=self.environment.model_copy(update={"type": "local", "isolation": "none"})
        )
        plan = replace(self._staging_plan(), command=pytest_command(bare))
        staged = stage(bare, plan)
        tests = str(staged.tests)
        command = pytest_command(bare, pytest_args, tests)
        plugin = command.index(PLUGIN)
        modules = f"{staged.plugin}:." if self.problem.in_process else str(staged.plugin)
        ours = {"UV_CACHE_DIR": str(self.cache.uv), "PYTHONPATH": modules}
        variables = {**ours, **variables_for(self.problem, self.checkpoint, tests)}
        settings = [f"{name}={value}" for name, value in variables.items()]
        return ["env", *settings, *command[: plugin - 1], *command[plugin + 1 :]]

    def _parse_ctrf_report(self, report: bytes | None = None) -> list[RawTest]:
        """Without a report, that which `run()` left in the output folder."""
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
        """Also as `(test, checkpoint_name, custom_markers)`, where `test` is an entry of a CTRF report."""
        ordered = list(self.problem.checkpoints)
        if isinstance(test_checkpoint, Mapping):
            return group_of_ctrf_test(test_checkpoint, markers, current_checkpoint, ordered)
        if isinstance(markers, str) or not isinstance(test_checkpoint, str) or not isinstance(current_checkpoint, str):
            raise UsageError("give (test_checkpoint, markers, current_checkpoint), or a CTRF test as the first")
        if current_checkpoint not in ordered:
            raise UsageError(
                f"{self.problem.name}: no checkpoint {current_checkpoint!r}; there are {', '.join(ordered)}"
            )
        return group_for(test_checkpoint, markers, current_checkpoint, self.problem.custom_groups)


def _read_again(run: _Run) -> SubmissionTree:
    """The submission after the tests. What decided must not have changed either."""
    assert run.staged is not None
    try:
        check_manifest(run.staged.folder)
        read_tool_environment(run.context.tools.entry, run.context.cache)
    except DAMAGE_ERRORS as error:
        message = "what is kept there was damaged while it was in use; evaluate again, and it is made anew"
        raise InfrastructureError(f"{run.context.cache.root}: {message} ({error})") from error
    return read_tree(open_submission(run.submission))


@contextlib.contextmanager
def _verbose_log(verbose: bool) -> Iterator[None]:
    logger = logging.getLogger("slop_code")
    if not verbose:
        yield
        return
    level, handler = logger.level, None if logger.hasHandlers() else logging.StreamHandler()
    logger.setLevel(logging.DEBUG)
    if handler:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(level)
        if handler:
            logger.removeHandler(handler)


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
