"""One checkpoint of one submission, from start to verdict."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code._io import keep_ends
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.command import LOCK, PLUGIN, TOOL, TOOLS, pytest_command
from slop_code.evaluation.evidence import CTRF_REPORT, JSON_REPORT, STREAM, Evidence, read_evidence
from slop_code.evaluation.grading import grade
from slop_code.evaluation.groups import GroupType, group_for, misspelt_markers
from slop_code.evaluation.provenance import platform_name, provenance_of
from slop_code.evaluation.pytest_ini import render_ini
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.reports.ctrf import parse_ctrf
from slop_code.evaluation.reports.record import RawTest, visible
from slop_code.evaluation.roster import Roster
from slop_code.evaluation.verdict import infrastructure_failure
from slop_code.evaluation.workspace import (
    Staged,
    choose,
    copy_tests,
    judge_environment,
    judge_files,
    stage,
    variables_for,
)
from slop_code.execution.boxes import REPORTS_DIR, TESTS_DIR, sandbox_for, sandbox_name
from slop_code.execution.cache import Cache
from slop_code.execution.session import Session
from slop_code.execution.snapshot import open_submission, tree_digest
from slop_code.execution.threads import beside
from slop_code.execution.tools import warm_tools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.execution.boxes import Judged, Progress, Sandbox, ToolEnv
    from slop_code.execution.process import Completed
    from slop_code.execution.spec import EnvironmentSpec

SESSION_BASE_S = 60.0
LOG_LIMIT = 16 << 20
REASON_LIMIT = 16 << 10
RAW_FILES = (JSON_REPORT, CTRF_REPORT, STREAM, "pytest.log")
NEVER_RAN = -1
"""`pytest_exit_code` of an evaluation that did not come as far as pytest."""


NO_EVIDENCE = Evidence((), "stream")


@dataclass(frozen=True, slots=True)
class _Run:
    """What is known so far; an evaluation that breaks off reports what it has."""

    command: Sequence[str] = ()
    tools: ToolEnv | None = None
    staged: Staged | None = None
    submission: str | None = None
    image: str | None = None
    evidence: Evidence = NO_EVIDENCE
    exit_code: int = NEVER_RAN
    reason: str | None = None
    phases: dict[str, float] = field(default_factory=dict)
    isolation: dict[str, Any] = field(default_factory=dict)
    """Empty where no box was opened."""


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
        progress: Progress = lambda _: None,
    ) -> None:
        """With `output_dir`, raw reports and pytest.log are kept in `.scbench` there."""
        self.problem = problem
        self.checkpoint = checkpoint
        self.environment = environment
        self.submission_path = Path(submission_path)
        self.output_dir = output_dir
        self.cache = cache or Cache.default()
        self.progress = progress

    def run(self, pytest_args: Sequence[str] | None = None) -> CorrectnessResults:
        """Never raises for what the submission, the sandbox or pytest do: that is in the result."""
        began, arguments = time.monotonic(), list(pytest_args or ())
        submission = open_submission(self.submission_path)
        self.keep_apart()
        platform, digest = beside(platform_name), beside(tree_digest, submission)
        state = self._evaluate(submission, arguments)
        platform()
        state = replace(state, submission=digest())
        return self._results(state, arguments, time.monotonic() - began)

    def _evaluate(self, submission: Path, arguments: Sequence[str]) -> _Run:
        state, watch = _Run(), _Stopwatch()
        self._forget()
        try:
            sandbox = sandbox_for(self.environment, self.cache, self.progress)
            state = replace(state, image=sandbox.image())
            tools = self._tools(sandbox)
            command = self._command(sandbox, tools, arguments)
            state = replace(state, command=command, tools=tools)
            staged = self._stage(sandbox, tools)
            state = replace(state, staged=staged)
            watch.lap("prepare")
            opening = Session.open(self.environment, submission, self.cache, self.progress, self._hidden(), sandbox)
            with opening as session:
                watch.lap("setup")
                self.progress(f"running {len(staged.roster.entries)} tests")
                reports = session.folder / "reports"
                reports.mkdir()
                judged = self._judge(session, command, staged, tools, reports)
                watch.lap("tests")
                evidence = read_evidence(reports)
                if not arguments:  # then nothing but the tests themselves can have left tests out
                    evidence = replace(evidence, deselected=frozenset())
                self._keep(reports)
            reason = self._reason(judged.done, evidence, staged.roster)
            exit_code = NEVER_RAN if judged.done.exit_code is None else judged.done.exit_code
            isolation = {**judged.isolation, "in_process": self.problem.in_process}
            state = replace(state, evidence=evidence, exit_code=exit_code, reason=reason, isolation=isolation)
        except InfrastructureError as error:
            exit_code = NEVER_RAN if error.exit_code is None else error.exit_code
            state = replace(state, exit_code=exit_code, reason=str(error))
        except OSError as error:
            place = error.filename or "input or output"
            reason = f"{place}: {error.strerror}; is the disk full, the cache or the output not writable?"
            state = replace(state, reason=reason)
        watch.lap("parse")
        return replace(state, phases=watch.phases)

    def _tools(self, sandbox: Sandbox) -> ToolEnv:
        return warm_tools(sandbox, TOOL, TOOLS, self.problem.test_dependencies, LOCK, self.cache, self.progress)

    def _stage(self, sandbox: Sandbox, tools: ToolEnv) -> Staged:
        command = self._command(sandbox, tools)
        about = (self.problem, self.checkpoint, self.environment)
        return stage(*about, sandbox, tools, command, self.cache, self.progress)

    def _judge(self, session: Session, command: Sequence[str], staged: Staged, tools: ToolEnv, reports: Path) -> Judged:
        environment = judge_environment(session, self.problem, self.checkpoint, staged.plugin, self.cache)
        return session.judge(
            command,
            environment,
            tests=staged.tests,
            shown=staged.shown,
            reports=reports,
            tools=tools,
            files=judge_files(session, tools, staged.plugin),
            timeout=self._session_timeout(staged.roster),
        )

    def keep_apart(self) -> None:
        """What lies inside the submission's folder, the submission can read."""
        submission = open_submission(self.submission_path)
        for path in self._hidden():
            if path.resolve().is_relative_to(submission):
                raise UsageError(f"{path} lies inside the submission {submission}; keep them apart")

    def _hidden(self) -> list[Path]:
        output = [self.output_dir] if self.output_dir else []
        return [self.problem.path, self.cache.root, *output]

    def _session_timeout(self, roster: Roster) -> float:
        """Every test may use up its own timeout and the session still ends."""
        given = self.checkpoint.session_timeout
        return given or SESSION_BASE_S + self.checkpoint.timeout * len(roster.entries)

    def _reason(self, done: Completed, evidence: Evidence, roster: Roster) -> str | None:
        ended = None
        running = f"while running {evidence.running}" if evidence.running else "with no test running"
        if done.exit_code is None:
            ended = f"session timeout of {self._session_timeout(roster):g} s {running}"
        reason = infrastructure_failure(done.exit_code, evidence=evidence, expected=roster.nodeids, ended=ended)
        if reason is not None and evidence.running and running not in reason:
            reason = f"{reason}, {running}"
        if reason is not None and not evidence.tests and done.output.strip():
            return f"{reason}\n{done.output.strip()}"
        return reason

    def _forget(self) -> None:
        """Raw evidence of an earlier evaluation must not lie beside this one's result."""
        if self.output_dir is None:
            return
        for name in RAW_FILES:
            (self.output_dir / REPORTS_DIR / name).unlink(missing_ok=True)

    def _keep(self, reports: Path) -> None:
        """Copy the raw evidence beside the result, each file within bounds."""
        keep_ends(reports / "pytest.log", LOG_LIMIT)
        if self.output_dir is None:
            return
        target = self.output_dir / REPORTS_DIR
        target.mkdir(parents=True, exist_ok=True)
        for name in RAW_FILES:
            if (reports / name).is_file() and not (reports / name).is_symlink():
                shutil.copyfile(reports / name, target / name, follow_symlinks=False)

    def _results(self, state: _Run, arguments: Sequence[str], duration: float) -> CorrectnessResults:
        roster = state.staged.roster if state.staged else Roster(())
        tests = grade(
            roster,
            state.evidence,
            ordered=list(self.problem.checkpoints),
            current=self.checkpoint.name,
            custom=self.problem.custom_groups,
            missing=state.reason or "left no result",
        )
        return CorrectnessResults(
            problem_name=self.problem.name,
            checkpoint_name=self.checkpoint.name,
            duration=duration,
            tests=tests,
            pytest_exit_code=state.exit_code,
            infrastructure_failure_reason=None if state.reason is None else visible(state.reason, REASON_LIMIT),
            isolation=state.isolation,
            deselected=len(state.evidence.deselected & roster.nodeids),
            phases=state.phases,
            provenance=provenance_of(
                self.problem,
                self.environment,
                submission=state.submission,
                image=state.image,
                tests=state.staged.digest if state.staged else None,
                tools=state.tools,
                command=state.command,
                pytest_args=arguments,
            ),
            evidence=state.evidence.source,
            warnings=self._warnings(state.staged),
        )

    def _warnings(self, staged: Staged | None) -> list[str]:
        found = [*self.problem.warnings, *self.environment.warnings]
        if self.environment.environment.include_os_env and sandbox_name(self.environment) != "none":
            found.append("include_os_env is ignored: under isolation nothing of the host's environment is passed on")
        if "cpus" in self.environment.limits.model_fields_set and self.environment.type == "local":
            found.append("limits.cpus is not enforced by this sandbox")
        entry = self.environment.entry(self.problem.entry_file)[-1]
        setup = self.environment.setup
        if not setup.commands and not setup.eval_commands and not os.path.lexists(self.submission_path / entry):
            found.append(f"the submission has no {entry}; is this the right folder, and the right environment?")
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
        return self._command(sandbox, self._tools(sandbox), pytest_args)

    def _command(
        self, sandbox: Sandbox, tools: ToolEnv, pytest_args: Sequence[str] = (), tests: str = TESTS_DIR
    ) -> list[str]:
        layout = sandbox.layout(Path())
        return pytest_command(
            uvx=f"{layout.tools}/uvx",
            python=tools.python,
            constraints=layout.place("requirements.txt", tools.constraints),
            test_dependencies=self.problem.test_dependencies,
            entrypoint=[*layout.launcher, *self.environment.entry(self.problem.entry_file)],
            checkpoint=self.checkpoint.name,
            timeout=self.checkpoint.timeout,
            pytest_args=pytest_args,
            tests=tests,
        )

    def command_by_hand(self, pytest_args: Sequence[str] = ()) -> list[str]:
        """The same command for a person's own shell, to be run in a copy of the submission: no boxes."""
        bare = self.environment.model_copy(update={"type": "local", "isolation": "none"})
        runner = PytestRunner(self.problem, self.checkpoint, bare, self.submission_path, cache=self.cache)
        sandbox = sandbox_for(bare, self.cache)
        tools = runner._tools(sandbox)
        tests = str(runner._stage(sandbox, tools).tests)
        command = runner._command(sandbox, tools, pytest_args, tests)
        plugin = command.index(PLUGIN)
        variables = {"UV_CACHE_DIR": str(self.cache.uv), **variables_for(self.problem, self.checkpoint, tests)}
        settings = [f"{name}={value}" for name, value in variables.items()]
        return ["env", *settings, *command[: plugin - 1], *command[plugin + 1 :]]

    def _parse_ctrf_report(self, report: bytes) -> list[RawTest]:
        return list(parse_ctrf(report).tests)

    def _determine_group_type(self, test_checkpoint: str, markers: Sequence[str], current_checkpoint: str) -> GroupType:
        return group_for(test_checkpoint, markers, current_checkpoint, self.problem.custom_groups)


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
