"""One checkpoint of one submission, from start to verdict."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError, SlopCodeError, UsageError
from slop_code.evaluation import pairs
from slop_code.evaluation.command import LOCK, PLUGIN, TOOL, TOOLS, pytest_command
from slop_code.evaluation.conclusion import conclude
from slop_code.evaluation.groups import GroupType, group_for, misspelt_markers
from slop_code.evaluation.provenance import platform_name, provenance_of
from slop_code.evaluation.pytest_ini import render_ini
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.reports.ctrf_report import parse_ctrf
from slop_code.evaluation.reports.raw_test import RawTest, visible
from slop_code.evaluation.roster import Roster
from slop_code.evaluation.run_tests import Trial, broken, forget, judge_all, keep, part_of, sessions_for
from slop_code.evaluation.staging import Staged, choose, copy_tests, stage, variables_for
from slop_code.execution.cache import DAMAGED, Cache
from slop_code.execution.concurrency import start_thread
from slop_code.execution.manifest import check_manifest
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.execution.sandbox import TESTS_DIR, sandbox_for, sandbox_name
from slop_code.execution.session import Session
from slop_code.execution.submission import open_submission, read_tree
from slop_code.execution.tool_environment import ToolRequest, build_tool_environment, read_tool_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.pairs import Part
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.execution.sandbox import Sandbox, ToolEnvironment
    from slop_code.execution.submission import Tree

NAME_LIMIT = 300


@dataclass(frozen=True, slots=True)
class _Run:
    """What is known so far; an evaluation that breaks off reports what it has."""

    command: Sequence[str] = ()
    tools: ToolEnvironment | None = None
    staged: Staged | None = None
    submission: Tree | None = None
    image: str | None = None
    parts: Sequence[Part] = ()
    phases: dict[str, float] = field(default_factory=dict)

    @property
    def roster(self) -> Roster:
        return self.staged.roster if self.staged else Roster(())


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
        progress: ProgressCallback = lambda _: None,
        most_pairs: int | None = None,
        hidden: Sequence[Path] = (),
        only: Sequence[str] | None = None,
        follow: Callable[[bytes], None] | None = None,
        seed: int | None = None,
        interactive: bool = False,
    ) -> None:
        """With `output_dir`, raw reports and pytest.log are kept in `.scbench` there.

        `most_pairs` bounds what the problem asks for with `parallel`. The submission sees nothing of `hidden`.
        `only`: the tests to run (`file::id`), in one pair; the others count as left out, so there is no verdict.
        `follow` is given what pytest prints, as it is printed. `seed` decides a random order, and the chance in tests.
        `interactive`: pytest reads this process's standard input, and no end of the session is set.
        """
        self.problem = problem
        self.checkpoint = checkpoint
        self.environment = environment
        self.submission_path = Path(submission_path)
        self.output_dir = output_dir
        self.cache = cache or Cache.default()
        self.progress = progress
        self.most_pairs = most_pairs
        self.hidden = hidden
        self.only = only
        self.follow = follow
        self.seed = seed
        self.interactive = interactive

    def run(self, pytest_args: Sequence[str] | None = None) -> CorrectnessResults:
        """Never raises for what the submission, the sandbox or pytest do: that is in the result; a stop has none."""
        began, arguments = time.monotonic(), list(pytest_args or ())
        submission = open_submission(self.submission_path)
        self.keep_apart()
        platform, tree = start_thread(platform_name), start_thread(read_tree, submission)
        with self.cache.shared_lock():
            state = self._evaluate(submission, arguments, tree)
        platform()
        with contextlib.suppress(InfrastructureError):  # that is why there is no verdict, if there is no other reason
            state = replace(state, submission=tree())
        return self._results(state, arguments, time.monotonic() - began)

    def _evaluate(self, submission: Path, arguments: Sequence[str], before: Callable[[], Tree]) -> _Run:
        state, watch = _Run(), _Stopwatch()
        forget(self.output_dir)
        try:
            sandbox = sandbox_for(self.environment, self.cache, self.progress)
            state = replace(state, image=sandbox.image())
            tools = tools_for(sandbox, self.problem)
            command = self._command(sandbox, tools, arguments)
            state = replace(state, command=command, tools=tools)
            staged = stage_for(sandbox, tools, *self._about, self.cache, self.progress)
            state = replace(state, staged=staged)
            watch.lap("prepare")
            groups = self._groups(staged.roster, arguments)
            trial = Trial(
                self.problem,
                self.checkpoint,
                staged,
                tools,
                command,
                arguments,
                follow=self.follow,
                seed=self.seed,
                interactive=self.interactive,
            )
            opening = Session.open(self.environment, submission, self.cache, self.progress, self._hidden(), sandbox)
            with opening as session, sessions_for(session, groups) as sessions:
                watch.lap("setup")
                count = sum(len(own.entries) for own in groups)
                self.progress(ProgressEvent(ProgressKind.RUN_TESTS, count=count, total=len(groups)))
                judged = judge_all(trial, sessions, groups)
                watch.lap("tests")
                now = start_thread(_read_again, submission, staged, tools, self.cache)
                parts = [part_of(trial, *one) for one in zip(sessions, groups, judged, strict=True)]
                keep(self.output_dir, sessions, parts)
            state = replace(state, parts=parts if self.only is None else [pairs.alone(parts[0], staged.roster)])
            if why := not_one_tree(parts, submission, before, now):
                forget(self.output_dir)
                raise why
        except (InfrastructureError, OSError) as error:
            state = replace(state, parts=[broken(error, state.roster)])
        watch.lap("parse")
        return replace(state, phases=watch.phases)

    @property
    def _about(self) -> tuple[ProblemConfig, CheckpointConfig, EnvironmentSpec]:
        return self.problem, self.checkpoint, self.environment

    def _groups(self, roster: Roster, arguments: Sequence[str]) -> list[Roster]:
        if self.only is None:
            return pairs.partition(roster, self.problem.parallel_by, self._pairs(arguments))
        place = f"{self.problem.name} {self.checkpoint.name}"
        known, wanted = roster.nodeids, frozenset(self.only)
        if gone := [name for name in self.only if name not in known]:
            name = visible(gone[0], NAME_LIMIT)
            raise UsageError(f"{place}: {name} is no longer among the tests; run the checkpoint again as a whole")
        return [Roster(tuple(entry for entry in roster.entries if entry.nodeid in wanted))]

    def _pairs(self, arguments: Sequence[str]) -> int:
        found = pairs.pairs_at_most(self.problem, self.environment, arguments)
        return min(found, self.most_pairs or found)

    def keep_apart(self) -> None:
        """What lies inside the submission's folder, the submission can read."""
        submission = open_submission(self.submission_path)
        for path in self._hidden():
            if path.resolve().is_relative_to(submission):
                raise UsageError(f"{path} lies inside the submission {submission}; keep them apart")

    def _hidden(self) -> list[Path]:
        output = [self.output_dir] if self.output_dir else []
        return [self.problem.path, self.cache.root, *output, *self.hidden]

    def _results(self, state: _Run, arguments: Sequence[str], duration: float) -> CorrectnessResults:
        found = conclude(
            state.parts,
            state.roster,
            ordered=list(self.problem.checkpoints),
            current=self.checkpoint.name,
            custom=self.problem.custom_groups,
        )
        return CorrectnessResults(
            problem_name=self.problem.name,
            checkpoint_name=self.checkpoint.name,
            duration=duration,
            tests=found.tests,
            pytest_exit_code=found.exit_code,
            infrastructure_failure_reason=found.reason,
            isolation=pairs.isolation_of(state.parts),
            deselected=found.deselected,
            phases=state.phases,
            provenance=provenance_of(
                self.problem,
                self.checkpoint,
                self.environment,
                submission=state.submission.digest if state.submission else None,
                image=state.image,
                tests=state.staged.digest if state.staged else None,
                tools=state.tools,
                command=state.command,
                pytest_args=arguments,
            ),
            evidence=found.source,
            warnings=self._warnings(state.staged, state.submission),
        )

    def _warnings(self, staged: Staged | None, submission: Tree | None) -> list[str]:
        found = [*self.problem.warnings, *self.environment.warnings]
        if self.environment.environment.include_os_env and sandbox_name(self.environment) != "none":
            found.append("include_os_env is ignored: under isolation nothing of the host's environment is passed on")
        if "cpus" in self.environment.limits.model_fields_set and self.environment.type == "local":
            found.append("limits.cpus is not enforced by this sandbox")
        shared = pairs.shared_network(self.environment)
        if self.problem.parallel > 1 and shared:
            found.append(f"parallel is ignored: with {shared} all pairs would share one network")
        entry = self.environment.entry(self.problem.entry_file)[-1]
        setup = self.environment.setup
        if not setup.commands and not setup.eval_commands and not os.path.lexists(self.submission_path / entry):
            found.append(f"the submission has no {entry}; is this the right folder, and the right environment?")
        if submission is not None and submission.unreadable:
            found.append(
                f"{submission.unreadable} of the submission's files and folders cannot be read by this user, and it "
                f"runs without them, the first: {visible(submission.first, NAME_LIMIT)}; make them readable"
            )
        if staged is not None:
            found += [f"tests/{name} belongs to no checkpoint and is not run" for name in staged.unattributed]
            found += misspelt_markers(staged.roster, self.problem.markers)
        return found

    def _copy_tests_from_problem(self, workspace: Path) -> list[str]:
        """The names of the test files that will run, copied with all they need below the workspace."""
        return list(copy_tests(self.problem, self.checkpoint, workspace / TESTS_DIR).run)

    def _generate_pytest_ini(self) -> str:
        return render_ini(self.problem.markers, choose(self.problem, self.checkpoint).run)

    def _build_pytest_command(self, pytest_args: Sequence[str] = ()) -> list[str]:
        sandbox = sandbox_for(self.environment, self.cache, self.progress)
        tools = tools_for(sandbox, self.problem)
        return self._command(sandbox, tools, pytest_args)

    def _command(self, sandbox: Sandbox, tools: ToolEnvironment, pytest_args: Sequence[str]) -> list[str]:
        return command_for(sandbox, tools, *self._about, pytest_args)

    def command_by_hand(self, pytest_args: Sequence[str] = ()) -> list[str]:
        """The same command for a person's own shell, to be run in a copy of the submission: no boxes."""
        bare = self.environment.model_copy(update={"type": "local", "isolation": "none"})
        about = (self.problem, self.checkpoint, bare)
        sandbox = sandbox_for(bare, self.cache)
        tools = tools_for(sandbox, self.problem)
        staged = stage_for(sandbox, tools, *about, self.cache)
        tests = str(staged.tests)
        command = command_for(sandbox, tools, *about, pytest_args, tests)
        plugin = command.index(PLUGIN)
        modules = f"{staged.plugin}:." if self.problem.in_process else str(staged.plugin)
        ours = {"UV_CACHE_DIR": str(self.cache.uv), "PYTHONPATH": modules}
        variables = {**ours, **variables_for(self.problem, self.checkpoint, tests)}
        settings = [f"{name}={value}" for name, value in variables.items()]
        return ["env", *settings, *command[: plugin - 1], *command[plugin + 1 :]]

    def _parse_ctrf_report(self, report: bytes) -> list[RawTest]:
        return list(parse_ctrf(report).tests)

    def _determine_group_type(self, test_checkpoint: str, markers: Sequence[str], current_checkpoint: str) -> GroupType:
        return group_for(test_checkpoint, markers, current_checkpoint, self.problem.custom_groups)


def not_one_tree(
    parts: Sequence[Part], submission: Path, before: Callable[[], Tree], now: Callable[[], Tree]
) -> InfrastructureError | None:
    """Why there is no verdict: what was tested may be neither what was there before nor what is there now.

    None where there is another reason already: that one is told.
    """
    told = "the submission changed while it was evaluated; evaluate it when nothing writes to it"
    why = InfrastructureError(f"{submission}: {told}")
    try:
        if before().digest == now().digest:
            return None
    except InfrastructureError as error:
        why = error
    except (SlopCodeError, OSError):
        pass  # it can no longer be read as it could
    return why if pairs.reason_of(parts) is None else None


def _read_again(submission: Path, staged: Staged, tools: ToolEnvironment, cache: Cache) -> Tree:
    """Nothing that decides may have changed either, since it was looked at before the tests."""
    try:
        check_manifest(staged.folder)
        read_tool_environment(tools.entry, cache)
    except DAMAGED as error:
        told = "what is kept there was damaged while it was in use; evaluate again, and it is made anew"
        raise InfrastructureError(f"{cache.root}: {told} ({error})") from error
    return read_tree(open_submission(submission))


def tools_for(sandbox: Sandbox, problem: ProblemConfig) -> ToolEnvironment:
    """Made the first time it is asked for, and kept."""
    return build_tool_environment(sandbox, ToolRequest(TOOL, TOOLS, LOCK, problem.test_dependencies))


def command_for(
    sandbox: Sandbox,
    tools: ToolEnvironment,
    problem: ProblemConfig,
    checkpoint: CheckpointConfig,
    spec: EnvironmentSpec,
    pytest_args: Sequence[str] = (),
    tests: str = TESTS_DIR,
) -> list[str]:
    layout = sandbox.layout(Path())
    return pytest_command(
        uvx=f"{layout.tools}/uvx",
        python=tools.python,
        constraints=layout.judge_path("requirements.txt", tools.constraints),
        test_dependencies=problem.test_dependencies,
        entrypoint=[*layout.launcher, *spec.entry(problem.entry_file)],
        checkpoint=checkpoint.name,
        timeout=checkpoint.timeout,
        pytest_args=pytest_args,
        tests=tests,
    )


def stage_for(
    sandbox: Sandbox,
    tools: ToolEnvironment,
    problem: ProblemConfig,
    checkpoint: CheckpointConfig,
    spec: EnvironmentSpec,
    cache: Cache,
    progress: ProgressCallback = lambda _: None,
) -> Staged:
    """The tests, collected without any of an evaluation's own arguments."""
    command = command_for(sandbox, tools, problem, checkpoint, spec)
    return stage(problem, checkpoint, spec, sandbox, tools, command, cache, progress)


def prepare_tests(
    problem: ProblemConfig,
    checkpoint: CheckpointConfig,
    spec: EnvironmentSpec,
    cache: Cache,
    progress: ProgressCallback,
) -> tuple[Roster, Mapping[str, str]]:
    """Which tests there are, and the versions of what they run with: both found out once, and kept."""
    with cache.shared_lock():
        sandbox = sandbox_for(spec, cache, progress)
        tools = tools_for(sandbox, problem)
        return stage_for(sandbox, tools, problem, checkpoint, spec, cache, progress).roster, tools.versions


class _Stopwatch:
    def __init__(self) -> None:
        self.phases: dict[str, float] = {"prepare": 0.0, "setup": 0.0, "tests": 0.0, "parse": 0.0}
        self.last = time.monotonic()

    def lap(self, phase: str) -> None:
        now = time.monotonic()
        self.phases[phase] += now - self.last
        self.last = now


def run_checkpoint_pytest(
    submission_path: Path | str,
    problem: ProblemConfig,
    checkpoint: CheckpointConfig,
    env_spec: EnvironmentSpec,
    pytest_args: Sequence[str] | None = None,
) -> CorrectnessResults:
    return PytestRunner(problem, checkpoint, env_spec, submission_path).run(pytest_args)
