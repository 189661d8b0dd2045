"""Evaluations by verifiers itself, with a scripted model behind its interface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slop_code import evaluate
from slop_code.evaluation.reward_values import rewards_of
from tests.bridges.agent_programs import LARDER, PROGRAMS, run_process, snapshot, write_files
from tests.bridges.page_blocks import run_page

if TYPE_CHECKING:
    from collections.abc import Callable

TITLES = ("# Larder, part 1: reading and scaling recipes", "# Larder, part 2: shopping lists")

pytestmark = pytest.mark.long


@pytest.fixture
def vf_eval(bridge_python: Callable[[str], Path], cache: object, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """`vf_eval(command of checkpoint 1, command of checkpoint 2, "--option")`: the traces."""
    python = bridge_python("verifiers")

    def run(first: str, second: str, *options: object) -> list[dict[str, Any]]:
        answers = tmp_path / "answers.json"
        answers.write_text(json.dumps(dict(zip(TITLES, (first, second), strict=True))))
        command = [
            python.with_name("vf-eval"), "scripted-problems", "--env.taskset.problems", LARDER,
            "--env.taskset.checkpoints", "2", "--env.agent.runtime.type", "subprocess", "--model", "scripted",
            "--client.base-url", "BASE_URL", "--client.api-key-var", "NO_KEY", "--no-push", "--no-rich",
            "--output-dir", tmp_path / "outputs", *options,
        ]  # fmt: skip
        run_process([python, PROGRAMS / "model_server.py", answers, *command], tmp_path)
        [file] = (tmp_path / "outputs").rglob("traces.jsonl")
        return [trace for line in file.read_text().splitlines() for trace in json.loads(line)["traces"]]

    return run


def metrics(trace: dict[str, Any]) -> dict[str, float]:
    return dict(trace["metrics"])


def test_an_agent_works_through_checkpoints_and_each_has_the_rewards_of_its_evaluation(vf_eval):
    traces = vf_eval(write_files(snapshot("drifting", 1)), write_files(snapshot("drifting", 2)))
    rewards = [rewards_of(evaluate(snapshot("drifting", number), LARDER, number)) for number in (1, 2)]
    assert [metrics(trace) for trace in traces] == rewards
    assert [trace["rewards"]["reward"]["score"] for trace in traces] == [1.0, 0.0]
    assert [trace["task"]["data"]["checkpoint"] for trace in traces] == ["checkpoint_1", "checkpoint_2"]
    assert [trace["ok"] for trace in traces] == [True, True]


def test_another_reward_can_be_trained_on(vf_eval):
    commands = [write_files(snapshot("drifting", number)) for number in (1, 2)]
    traces = vf_eval(*commands, "--env.taskset.task.reward", "pass_rate")
    scores = [trace["rewards"]["reward"]["score"] for trace in traces]
    assert scores == [metrics(trace)["pass_rate"] for trace in traces]
    assert scores[0] == 1
    assert 0 < scores[1] < 1


LOAD = """
import sys
from slop_code import UsageError
from slop_code.bridges.verifiers import ProblemTaskset, ProblemTasksetConfig
config = ProblemTasksetConfig(problems=[sys.argv[1]], task={"reward": sys.argv[2]})
try:
    print(len(list(ProblemTaskset(config).load())))
except UsageError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("reward", "printed"),
    [
        ("pass_rate", "1"),
        ("regression_rate", "task.reward: expected one of strict, isolated, core, pass_rate, found 'regression_rate'"),
    ],
)
def test_a_reward_that_a_checkpoint_may_lack_cannot_be_trained_on(bridge_python, tmp_path, reward, printed):
    found = run_process([bridge_python("verifiers"), "-c", LOAD, LARDER, reward], tmp_path)
    assert found.startswith(printed)


def test_a_workspace_that_is_gone_is_0_and_no_error(vf_eval):
    """The runtime has no folder to start a command in."""
    traces = vf_eval('rm -rf "$PWD"', 'rm -rf "$PWD"')
    assert [trace["rewards"]["reward"]["score"] for trace in traces] == [0.0, 0.0]


def test_an_infrastructure_failure_is_an_error_without_a_reward(vf_eval, tmp_path):
    broken = tmp_path / "broken.yaml"
    broken.write_text("type: local\nname: broken\nsetup:\n  commands: [no-such-program]\n")
    [trace] = vf_eval(write_files(snapshot("steady", 1)), "true", "--env.taskset.task.environment", broken)
    assert trace["ok"] is False
    assert trace["rewards"].get("reward") is None
    assert "infrastructure failure" in trace["errors"][-1]["message"]


def test_a_forged_workspace_gains_nothing(vf_eval):
    forged = "ln -s / root; echo 1 > reward.txt; mkdir -p /tmp/logs/verifier .scbench; mkfifo pipe"
    traces = vf_eval(forged, "rm pipe; echo 'raise SystemExit' > main.py")
    assert [trace["rewards"]["reward"]["score"] for trace in traces] == [0.0, 0.0]


def test_the_commands_of_the_page_run(bridge_python, tmp_path):
    run_page("how-to/verifiers.md", Path(__file__), bridge_python("verifiers"), tmp_path, {})
