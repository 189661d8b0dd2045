"""Verifier for Harbor: `harbor run --verifier slop_code.bridges.harbor:SlopCodeVerifier`.

Harbor's own verifier copies the tests into the agent's container, runs them there, and believes a file that the agent
can write. This one takes the workspace out of the container and evaluates it on the host, in two boxes. Nothing of the
tests enters the container, and nothing that the container can write is read as evidence.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from slop_code._io import write_atomic
from slop_code._safe_text import escape_control
from slop_code._suggestions import near_or_known
from slop_code.bridges.harbor_download import AgentContainer
from slop_code.bridges.harbor_rewards import harbor_rewards
from slop_code.bridges.shared_evaluator import evaluate_with_retries
from slop_code.errors import InfrastructureError, SubmissionError, UsageError
from slop_code.evaluation.policy import RatePolicy
from slop_code.evaluation.problem.problem_lookup import find_problem
from slop_code.evaluation.report import RESULT_FILE, CorrectnessResults
from slop_code.evaluation.reward_values import refused_rewards, rewards_of
from slop_code.execution.cache import Cache
from slop_code.execution.docker.engine import Engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig

try:
    from harbor.models.verifier.result import VerifierResult
    from harbor.verifier.base import BaseVerifier
except ImportError as error:
    step = "with Python 3.12 or newer, install it: pip install 'slop-code[harbor]'"
    raise UsageError(f"this needs Harbor ({error}); {step}") from error

METADATA = "slop_code"
"""The table of `[metadata]` in task.toml that names the problem."""

RESULTS_DIR = "slop-code"
"""Folder of the results in the folder of a trial. No container has it; `verifier/` is mounted into the agent's, which
may write there whatever it likes."""

NO_WORKSPACE_FILE = "no-workspace.txt"
"""In the place of a result: the reason for which the agent's workspace was not evaluated."""

MAX_REASON_BYTES = 1 << 14
MAIN = "main"
PROJECT_LABEL, SERVICE_LABEL = "com.docker.compose.project", "com.docker.compose.service"


class SlopCodeVerifier(BaseVerifier):  # type: ignore[misc]
    """Keyword arguments come from `--verifier-kwarg NAME=VALUE`; a task that slop-code exported needs none.

    `problem`: its name or path. `problems_dir`: folder of problems, else that of `SCBENCH_PROBLEMS_DIR`.
    `checkpoint`: its name or number, for a task without steps. Steps are called like checkpoints.
    `evaluation_environment`: that of `slop-code -e`. `workspace`: folder of the submission in the container.
    `group_rates`: add the pass rates of the groups, which not every checkpoint has.
    """

    def __init__(
        self,
        *,
        problem: str | None = None,
        problems_dir: str | None = None,
        checkpoint: str | int | None = None,
        evaluation_environment: str | None = None,
        workspace: str | None = None,
        group_rates: bool = False,
        **harbor: Any,
    ) -> None:
        _check_names(harbor)
        super().__init__(**harbor)
        facts = self.task.config.metadata.get(METADATA, {})
        self._problem = _problem(facts, problem, problems_dir)
        self._checkpoint = _checkpoint(self._problem, self.step_name, checkpoint, facts)
        self._environment_word = evaluation_environment
        self._workspace = _workspace([workspace, facts.get("workspace"), self.environment.task_env_config.workdir])
        self._group_rates = group_rates
        self._check_mode()

    async def verify(self) -> VerifierResult:
        output = self._result_folder(self._checkpoint)
        async with _session_folder() as session:
            submission = session / "submission"
            try:
                await self._download(submission)
            except SubmissionError as error:
                self.logger.warning("no workspace: %s", error)
                output.mkdir(parents=True, exist_ok=True)
                write_atomic(output / NO_WORKSPACE_FILE, escape_control(str(error), MAX_REASON_BYTES) + "\n")
                rewards = refused_rewards()
            else:
                results = await evaluate_with_retries(
                    submission, self._problem, self._checkpoint.name, self._environment_word, output=output
                )
                rewards = rewards_of(results)
        return VerifierResult(rewards=harbor_rewards(rewards, self._solved(rewards), self._group_rates))

    def _result_folder(self, checkpoint: CheckpointConfig) -> Path:
        """Laid out like a run, which `slop-code show` and `report` read."""
        return Path(self.trial_paths.trial_dir, RESULTS_DIR, self._problem.path.name, checkpoint.name)

    async def _download(self, target: Path) -> None:
        """Raises SubmissionError where the agent left no workspace that can be read."""
        container = await asyncio.to_thread(_container_of, self.environment)
        if container is not None:
            await container.download(self._workspace, target)
        elif await self.environment.is_dir(self._workspace, user="root"):
            target.mkdir()
            await self.environment.download_dir(self._workspace, target)
        else:
            raise SubmissionError(f"{self._workspace} is no folder")

    def _solved(self, rewards: Mapping[str, float]) -> float:
        """The value that Harbor's reward for the trial makes the share of steps whose checkpoint passed.

        With the strategy `mean` that is the reward of this step alone. With `final` it is a share of all steps, so that
        steps which a trial never reached count against it.
        """
        steps = self.task.config.steps or []
        strategy = getattr(self.task.config.multi_step_reward_strategy, "value", None)
        if not steps or strategy != "final":
            return rewards[RatePolicy.STRICT]
        files = [self._result_folder(self._problem.checkpoint(step.name)) / RESULT_FILE for step in steps]
        stored = [CorrectnessResults.load(file) for file in files if file.is_file()]
        return sum(result.passes(RatePolicy.STRICT) for result in stored) / len(steps)

    def _check_mode(self) -> None:
        """A separate verifier environment is a fresh container, without the agent's work."""
        from harbor.models.task.verifier_mode import resolve_step_verifier_mode, resolve_task_verifier_mode

        config = self.task.config
        steps = [step for step in config.steps or [] if step.name == self.step_name]
        mode = resolve_step_verifier_mode(config, steps[0]) if steps else resolve_task_verifier_mode(config)
        if mode.value != "shared":
            step = 'remove environment_mode and [verifier.environment]: nothing runs in the "shared" one'
            raise UsageError(f"task.toml: the verifier has an environment of its own, without the agent's work; {step}")


@contextlib.asynccontextmanager
async def _session_folder() -> AsyncIterator[Path]:
    """A folder in the cache. It is removed in a thread, as a hostile tree takes long."""
    session = Cache.default().session_folder()
    folder = await asyncio.to_thread(session.__enter__)
    try:
        yield folder
    finally:
        await asyncio.to_thread(session.__exit__, None, None, None)


def _check_names(harbor: Mapping[str, object]) -> None:
    """Harbor's base class takes every keyword argument, so that a misspelt one would go unnoticed."""
    theirs = inspect.signature(BaseVerifier.__init__).parameters
    own = [name for name in inspect.signature(SlopCodeVerifier.__init__).parameters if name not in ("self", "harbor")]
    for name in harbor:
        if name not in theirs:
            raise UsageError(f"--verifier-kwarg: no argument {name!r}{near_or_known(name, own)}")


def _problem(facts: Mapping[str, Any], given: str | None, problems_dir: str | None) -> ProblemConfig:
    """A task comes from anywhere, so it may name a problem, but no path."""
    named = facts.get("problem")
    if given is None and (not isinstance(named, str) or "/" in named or named in (".", "..")):
        raise UsageError(f"task.toml: [metadata.{METADATA}] names no problem; give --verifier-kwarg problem=NAME")
    problem = find_problem(str(given or named), None if problems_dir is None else Path(problems_dir))
    version = facts.get("version")
    if version is not None and str(version) != str(problem.version):
        step = "export the task again"
        raise UsageError(f"{problem.path}: version {problem.version}, and the task is of version {version}; {step}")
    return problem


def _checkpoint(
    problem: ProblemConfig, step: str | None, given: str | int | None, facts: Mapping[str, Any]
) -> CheckpointConfig:
    if step is not None:
        if given is not None:
            raise UsageError(f"the task has steps, whose names are those of checkpoints ({step}); give no checkpoint")
        return problem.checkpoint(step)
    named = given if given is not None else facts.get("checkpoint")
    if named is None and len(problem.checkpoints) > 1:
        raise UsageError("the task has no steps, and names no checkpoint; give --verifier-kwarg checkpoint=N")
    return problem.checkpoint(next(iter(problem.checkpoints)) if named is None else named)


def _workspace(candidates: list[Any]) -> str:
    path = next((candidate for candidate in candidates if candidate), None)
    if path is None:
        raise UsageError("no folder of the submission is named; give --verifier-kwarg workspace=/PATH")
    pure = PurePosixPath(str(path))
    if not pure.is_absolute() or len(pure.parts) < 2 or ".." in pure.parts:
        raise UsageError(f"workspace: expected an absolute path below the root, found {str(path)!r}")
    return str(pure)


def _container_of(environment: Any) -> AgentContainer | None:
    """None where the environment is none of Docker or Podman on this machine."""
    from harbor.environments.docker.docker import DockerEnvironment, _sanitize_docker_compose_project_name

    if not isinstance(environment, DockerEnvironment):
        return None
    engine = Engine(type(environment).runtime().engine[0])
    project = _sanitize_docker_compose_project_name(environment.session_id)
    labels = [f"--filter=label={PROJECT_LABEL}={project}", f"--filter=label={SERVICE_LABEL}={MAIN}"]
    names = engine.check_output("ps", "--all", "--quiet", "--no-trunc", *labels).split()
    if len(names) != 1:
        step = f"see `{engine.binary} ps --all {labels[0]}`, and run the trial again"
        raise InfrastructureError(f"{len(names)} containers of the trial's project {project}, expected one; {step}")
    return AgentContainer(engine, names[0])
