"""Inspect (inspect-ai): a scorer of workspaces, a solver that leads an agent through checkpoints, a task of both."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Any

from slop_code.bridges.agent_workspace import (
    COMMAND_S,
    CheckpointScore,
    absolute_environment,
    fetch_workspace,
    first_checkpoints,
    refused_workspace,
    score_workspace,
    task_text,
    unscored,
    visible_files,
)
from slop_code.errors import SubmissionError, UsageError
from slop_code.evaluation.problem.problem_lookup import find_problem
from slop_code.evaluation.reward_values import mean_rewards

try:
    from inspect_ai import Task, task
    from inspect_ai.agent import Agent, as_solver, is_agent, react
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageUser
    from inspect_ai.scorer import Score, Scorer, Target, mean, score, scorer, stderr
    from inspect_ai.solver import Generate, Solver, TaskState, solver
    from inspect_ai.tool import bash
    from inspect_ai.util import OutputLimitExceededError, SandboxUnavailableError, registry_create, sandbox
except ImportError as error:
    raise UsageError(f"this needs inspect-ai ({error}); install it: pip install 'slop-code[inspect]'") from error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspect_ai.util import SandboxEnvironment

    from slop_code.evaluation.config import ProblemConfig

__all__ = ["checkpoint_scorer", "problem_scorer", "problem_task", "work_through_checkpoints"]

CURRENT, SCORED = "slop_code:checkpoint", "slop_code:scored"
METRICS = {"*": [mean(), stderr()]}


@scorer(metrics=METRICS)
def checkpoint_scorer(
    problem: str | None = None,
    checkpoint: int | str | None = None,
    environment: str | None = None,
    workspace: str = ".",
) -> Scorer:
    """Evaluates the folder `workspace` of the sandbox for one checkpoint, on this machine and in boxes of its own.

    What is not given is taken from the sample's metadata of the same name; `problem` is a name or a path.
    """

    async def evaluate(state: TaskState, target: Target) -> Score:
        del target
        given = state.metadata
        chosen, number = problem or given.get("problem"), checkpoint or given.get("checkpoint")
        if chosen is None or number is None:
            raise UsageError("give problem and checkpoint to checkpoint_scorer, or put them into the sample's metadata")
        config = find_problem(chosen, None)
        name = config.checkpoint(number).name
        scored = await _score_sandbox(config, [name], environment or given.get("environment"), workspace)
        return _as_score(scored[name])

    return evaluate


@scorer(metrics=METRICS)
def problem_scorer(workspace: str = ".") -> Scorer:
    """While `work_through_checkpoints` runs, the score of its checkpoint; afterwards the means over all checkpoints.

    Checkpoints that the agent did not reach are evaluated with what it left.
    """

    async def evaluate(state: TaskState, target: Target) -> Score:
        del target
        names, scored = state.metadata["checkpoints"], _scored(state)
        current = state.store.get(CURRENT)
        left = [name for name in names if name not in scored] if current is None else [current]
        if left:
            problem = find_problem(state.metadata["problem"], None)
            new = await _score_sandbox(problem, left, state.metadata["environment"], workspace)
            scored |= {name: asdict(value) for name, value in new.items()}
            state.store.set(SCORED, scored)
        if current is not None:
            return _as_score(CheckpointScore(**scored[current]))
        return _total({name: CheckpointScore(**scored[name]) for name in names})

    return evaluate


@solver
def work_through_checkpoints(agent: Solver) -> Solver:
    """Gives the agent one checkpoint after the other, in the same sandbox; each is scored before the next is shown."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        problem = find_problem(state.metadata["problem"], None)
        for path, content in visible_files(problem).items():
            await sandbox().write_file(path, content)
        for number, name in enumerate(state.metadata["checkpoints"]):
            if number:
                # The sample has none, and an agent that needs one adds it each time.
                state.messages = [message for message in state.messages if message.role != "system"]
                state.messages.append(ChatMessageUser(content=task_text(problem, name)))
            state.completed = False
            state.store.set(CURRENT, name)
            try:
                state = await agent(state, generate)
                await score(state)
            except BaseException:  # a limit: what the agent scored itself, before it went on, does not count
                state.store.set(SCORED, {each: value for each, value in _scored(state).items() if each != name})
                raise
            finally:
                state.store.delete(CURRENT)
        return state

    return solve


@task(name="problem")
def problem_task(
    problem: str | Sequence[str],
    checkpoints: int | None = None,
    environment: str | None = None,
    agent: Agent | Solver | str | None = None,
) -> Task:
    """A sample for each problem, in Inspect's Docker sandbox unless another one is chosen.

    `checkpoints`: only so many, from the first. `environment`: that of the evaluations, not of the sandbox.
    `agent`: an agent or a solver, or the name of a registered one. The default is `react` with `bash`.
    """
    given = [problem] if isinstance(problem, str) else list(problem)
    samples = [_sample(name, checkpoints, environment) for name in given]
    steps = work_through_checkpoints(_as_solver(agent))
    return Task(dataset=samples, solver=steps, scorer=problem_scorer(), sandbox="docker")


def _scored(state: TaskState) -> dict[str, Any]:
    return dict(state.store.get(SCORED, {}))


def _sample(given: str, checkpoints: int | None, environment: str | None) -> Sample:
    problem = find_problem(given, None)
    names = first_checkpoints(problem, checkpoints)
    kept = {"problem": str(problem.path), "checkpoints": names, "environment": absolute_environment(environment)}
    return Sample(id=problem.name, input=task_text(problem, names[0]), target="", metadata=kept)


def _as_solver(agent: Agent | Solver | str | None) -> Solver:
    chosen: Any = react(tools=[bash(timeout=COMMAND_S)]) if agent is None else agent
    if isinstance(chosen, str):
        try:
            chosen = registry_create("agent", chosen)
        except LookupError:
            chosen = registry_create("solver", chosen)
    return as_solver(chosen) if is_agent(chosen) else chosen


async def _score_sandbox(
    problem: ProblemConfig, checkpoints: Sequence[str], environment: str | None, workspace: str
) -> dict[str, CheckpointScore]:
    """The same workspace for each of the checkpoints."""
    with tempfile.TemporaryFile() as packed:
        try:
            await _fetch(sandbox(), workspace, packed)
        except SubmissionError as error:
            return dict.fromkeys(checkpoints, refused_workspace(str(error)))
        except Exception as error:  # noqa: BLE001  (of the sandbox, whichever it is)
            return dict.fromkeys(checkpoints, unscored(f"the sandbox failed: {type(error).__name__}: {error}"))
        scores = {}
        for name in checkpoints:
            packed.seek(0)
            scores[name] = await score_workspace(packed, problem, name, environment)
        return scores


async def _fetch(box: SandboxEnvironment, workspace: str, packed: IO[bytes]) -> None:
    async def run(argv: list[str]) -> tuple[int, str]:
        try:
            done = await box.exec(argv, timeout=COMMAND_S)
        except (OutputLimitExceededError, SandboxUnavailableError) as error:
            raise SubmissionError(f"the workspace cannot be read: {type(error).__name__}: {error}") from error
        return done.returncode, done.stdout

    try:
        await fetch_workspace(run, workspace, packed)
    except SubmissionError:
        await _ask_provider(box)
        raise


async def _ask_provider(box: SandboxEnvironment) -> None:
    """Raises an error if the provider of the sandbox itself fails, such as a Docker daemon that does not answer.

    No command in the sandbox could tell that, as an agent may replace it. A provider that answers that the sandbox no
    longer runs blames the agent, which can end it.
    """
    with contextlib.suppress(NotImplementedError, ConnectionError):
        await box.connection()


def _as_score(checkpoint: CheckpointScore) -> Score:
    text, kept = checkpoint.explanation, checkpoint.metadata
    if not checkpoint.rewards:
        return Score.unscored(reason="scoring_failed", explanation=text, metadata=kept)
    return Score(value=mean_rewards([checkpoint.rewards]), explanation=text, metadata=kept)


def _total(checkpoints: dict[str, CheckpointScore]) -> Score:
    """Unscored if one checkpoint has no verdict: the mean over the others would be another number."""
    text = "\n\n".join(f"{name}: {checkpoint.explanation}" for name, checkpoint in checkpoints.items())
    kept = {name: {"rewards": each.rewards, **each.metadata} for name, each in checkpoints.items()}
    if not all(checkpoint.rewards for checkpoint in checkpoints.values()):
        return Score.unscored(reason="scoring_failed", explanation=text, metadata=kept)
    value = mean_rewards([checkpoint.rewards for checkpoint in checkpoints.values()])
    return Score(value=value, explanation=text, metadata=kept)
