"""verifiers: a taskset of problems, and an environment in which an agent works through their checkpoints.

verifiers finds a taskset by the name of a top-level module: write one that has `CheckpointsEnv` and `ProblemTaskset`
in its `__all__`.
"""

from __future__ import annotations

import asyncio
import tempfile
from typing import TYPE_CHECKING, Any

from pydantic import Field

from slop_code.bridges.agent_workspace import (
    COMMAND_S,
    CheckpointScore,
    absolute_environment,
    fetch_workspace,
    first_checkpoints,
    refused_workspace,
    score_workspace,
    task_text,
    visible_files,
)
from slop_code.errors import InfrastructureError, SubmissionError, UsageError
from slop_code.evaluation.problem.problem_lookup import find_problem
from slop_code.evaluation.reward_values import CHECKPOINT_REWARDS

try:
    import verifiers.v1 as vf
except ImportError as error:
    raise UsageError(f"this needs verifiers ({error}); install it: pip install 'verifiers>=0.4'") from error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.evaluation.config import ProblemConfig

__all__ = ["CheckpointTask", "CheckpointsEnv", "ProblemTaskset"]


class CheckpointTaskConfig(vf.TaskConfig):
    environment: str | None = None
    """That of the evaluations, not of the agent's runtime: a name or the path of a file."""

    reward: str = "strict"
    """The reward that is trained on, one that every checkpoint has; all rewards are metrics."""


class ProblemTasksetConfig(vf.TasksetConfig):
    problems: list[str] = Field(default_factory=list)
    """Names or paths."""

    checkpoints: int | None = None
    """Only so many, from the first."""

    image: str | None = None
    """Of the agent's container."""

    task: CheckpointTaskConfig = CheckpointTaskConfig()


class CheckpointData(vf.TaskData):
    problem: str
    """The path of its folder."""

    checkpoint: str
    checkpoints: list[str]
    """All that the agent works through, in order."""


class CheckpointTask(vf.Task[CheckpointData, vf.State, CheckpointTaskConfig]):
    """One checkpoint, in a workspace that has what the agent wrote for earlier ones."""

    @property
    def problem(self) -> ProblemConfig:
        return find_problem(self.data.problem, None)

    def at(self, checkpoint: str) -> CheckpointTask:
        task: CheckpointTask = self.with_data(checkpoint=checkpoint, prompt=task_text(self.problem, checkpoint))
        return task

    async def setup(self, trace: Any, runtime: Any) -> None:
        for path, content in visible_files(self.problem).items():
            await runtime.write(path, content)

    @vf.metric
    async def evaluation(self, trace: Any, runtime: Any) -> dict[str, float]:
        """Every reward. An infrastructure failure is an error of the rollout, which then has no reward."""
        score = await self._score(runtime)
        if not score.rewards:
            raise InfrastructureError(score.explanation)
        trace.info["slop_code"] = {"explanation": score.explanation, **score.metadata}
        return score.rewards

    @vf.reward
    async def reward(self, trace: Any) -> float:
        """Metrics are computed before rewards."""
        return float(trace.metrics[self.config.reward])

    async def _score(self, runtime: Any) -> CheckpointScore:
        """Errors of the runtime's own call are raised: that of a container engine's runtime is an exit status."""

        async def run(argv: list[str]) -> tuple[int, str]:
            async with asyncio.timeout(COMMAND_S):
                done = await runtime.run(argv, {})
            return done.exit_code, done.stdout

        with tempfile.TemporaryFile() as packed:
            try:
                await fetch_workspace(run, ".", packed)
            except SubmissionError as error:
                return refused_workspace(str(error))
            packed.seek(0)
            return await score_workspace(packed, self.problem, self.data.checkpoint, self.config.environment)


class ProblemTaskset(vf.Taskset[CheckpointTask, ProblemTasksetConfig]):
    """A task for each problem: its first checkpoint, which `CheckpointsEnv` follows with the others."""

    def load(self) -> Iterator[CheckpointTask]:
        if not self.config.problems:
            raise UsageError("problems: give at least one, by --env.taskset.problems")
        if self.config.task.reward not in CHECKPOINT_REWARDS:
            known = ", ".join(CHECKPOINT_REWARDS)
            reason = "others are metrics, which not every checkpoint has"
            raise UsageError(f"task.reward: expected one of {known}, found {self.config.task.reward!r}; {reason}")
        environment = absolute_environment(self.config.task.environment)
        settings = self.config.task.model_copy(update={"environment": environment})
        for given in self.config.problems:
            problem = find_problem(given, None)
            names = first_checkpoints(problem, self.config.checkpoints)
            data = CheckpointData(
                id=problem.name, name=problem.name, description=problem.description, image=self.config.image,
                prompt=task_text(problem, names[0]), problem=str(problem.path), checkpoint=names[0], checkpoints=names,
            )  # fmt: skip
            yield CheckpointTask(data, settings)


class CheckpointsEnvConfig(vf.EnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig()


class CheckpointsEnv(vf.Env[CheckpointsEnvConfig]):
    """A rollout for each checkpoint, one after the other in the same runtime; each is scored before the next begins."""

    async def run(self, task: Any, agents: Any) -> None:
        async with agents.agent.provision(task) as runtime:
            for checkpoint in task.data.checkpoints:
                trace = await agents.agent.run(task.at(checkpoint), runtime=runtime)
                if not trace.ok:
                    return
