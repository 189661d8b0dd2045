"""Trials of Harbor with the verifier of slop-code: real containers, and rewards that are those of `eval-snapshot`."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from slop_code import evaluate, load_results
from slop_code.bridges.harbor_rewards import harbor_rewards
from slop_code.bridges.harbor_task import export_harbor_task
from slop_code.cli.main import run
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.reward_values import refused_rewards, rewards_of
from tests.bridges.harbor_runs import ROOT, VERIFIER, trial_of
from tests.conftest import IMAGE, write_files
from tests.docs.pages import DOCS, blocks

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bridges.harbor_runs import Harbor

pytestmark = pytest.mark.long

HITCOUNT = ROOT / "examples/problems/hitcount"
SOLUTIONS = HITCOUNT / "solutions"


@pytest.fixture(scope="module")
def task(harbor: Harbor) -> Path:
    target = harbor.folder / "tasks" / "hitcount"
    export_harbor_task(ProblemConfig.from_yaml(HITCOUNT), target, IMAGE)
    return target


def solving(folder: Path, *solutions: Path) -> Path:
    for number, solution in enumerate(solutions, start=1):
        shutil.copytree(solution, folder / str(number))
    return folder


def expected(solution: Path, checkpoint: int, solved: float) -> dict[str, float]:
    return harbor_rewards(rewards_of(evaluate(solution, HITCOUNT, checkpoint)), solved, group_rates=False)


def test_an_agent_that_solves_each_step_gets_each_reward(harbor, task, tmp_path):
    script = solving(tmp_path / "script", SOLUTIONS / "checkpoint_1", SOLUTIONS / "checkpoint_2")
    (script / "2.sh").write_text("find / -xdev '(' -name 'test_checkpoint*' -o -name solutions ')' > /logs/agent/seen")
    trial = harbor.run(task, script, *VERIFIER)
    assert [step["exception_info"] for step in trial.steps] == [None, None]
    assert trial.step_rewards == [
        {"reward": 1, "strict": 1, "isolated": 1, "core": 1, "pass_rate": 1, "solved": 0.5},
        {"reward": 1, "strict": 1, "isolated": 1, "core": 1, "pass_rate": 1, "solved": 1},
    ]
    assert trial.rewards == trial.step_rewards[-1]
    results = load_results(trial.folder / "slop-code/hitcount/checkpoint_2/evaluation.json")
    assert results.passes()
    assert (trial.folder / "slop-code/hitcount/checkpoint_2/.scbench").is_dir()
    assert run(["verify", str(trial.folder / "slop-code")]) == 0
    assert run(["report", str(trial.folder / "slop-code"), "-o", str(tmp_path / "report.html")]) == 0
    assert (trial.folder / "steps/checkpoint_2/agent/seen").read_text() == ""
    first, second = (trial.folder / f"steps/checkpoint_{n}/agent/instruction-{n}.md" for n in (1, 2))
    assert first.read_text() != second.read_text()


def test_a_wrong_solution_gets_what_eval_snapshot_says_of_it(harbor, task, tmp_path):
    old = SOLUTIONS / "checkpoint_1"
    trial = harbor.run(task, solving(tmp_path / "script", old, old), *VERIFIER)
    assert trial.step_rewards == [expected(old, 1, 0.5), expected(old, 2, 0.5)]
    assert 0 < trial.step_rewards[1]["pass_rate"] < 1


def test_a_workspace_that_the_agent_removed_or_made_too_large_is_a_reward_of_0(harbor, task, tmp_path):
    """Otherwise an agent could cancel a bad reward."""
    lines = {"1.sh": "truncate -s 20G /workspace/x", "2.sh": "cd /; rm -rf /workspace"}
    script = write_files(tmp_path / "script", lines)
    trial = harbor.run(task, script, *VERIFIER)
    large = load_results(trial.folder / "slop-code/hitcount/checkpoint_1/evaluation.json")
    assert "more than 16 GiB" in str(large.setup_failure)
    assert trial.step_rewards[0]["pass_rate"] == 0
    assert trial.rewards == harbor_rewards(refused_rewards(), 0.0, group_rates=False)
    reason = (trial.folder / "slop-code/hitcount/checkpoint_2/no-workspace.txt").read_text()
    assert reason.startswith("/workspace cannot be read: ")


def test_links_and_devices_of_the_agent_reach_nothing_on_the_host(harbor, task, tmp_path):
    """The link would lead the evaluation to the tests, the device to a disk."""
    script = solving(tmp_path / "script", SOLUTIONS / "checkpoint_1")
    target = tmp_path / "host.txt"
    target.write_text("of the host")
    lines = [
        f"ln -s {target} /workspace/a", f"ln -s {tmp_path} /workspace/b", f"ln -s {HITCOUNT} /workspace/tests",
        "mknod /workspace/disk b 8 0", "chmod 4755 /workspace/main.sh", "mkfifo /workspace/pipe",
        "printf x > \"/workspace/$(printf 'odd\\n\\377name')\"",
        "ln -s /etc /logs/verifier/evaluation.json; ln -s /etc /logs/verifier/slop-code",
    ]  # fmt: skip
    (script / "1.sh").write_text("\n".join(lines))
    trial = harbor.run(task, script, *VERIFIER)
    assert trial.step_rewards[0]["strict"] == 1
    assert target.read_text() == "of the host"
    assert {path.name for path in tmp_path.iterdir()} == {"script", "host.txt"}


def test_an_infrastructure_failure_is_an_exception_and_no_reward(harbor, task, tmp_path):
    """The step after it is not run, and the trial has no reward: a mean over the steps would have been 1."""
    problems = tmp_path / "problems"
    shutil.copytree(HITCOUNT, problems / "hitcount")
    (problems / "hitcount/tests/test_checkpoint_2.py").write_text("")
    script = solving(tmp_path / "script", SOLUTIONS / "checkpoint_1", SOLUTIONS / "checkpoint_2")
    trial = harbor.run(task, script, *VERIFIER, "--verifier-kwarg", f"problems_dir={problems}")
    assert trial.step_rewards == [expected(SOLUTIONS / "checkpoint_1", 1, 0.5), None]
    assert trial.steps[1]["exception_info"]["exception_type"] == "InfrastructureError"
    assert trial.rewards is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["problme=hitcount"], "no argument 'problme'; did you mean 'problem'?"),
        (["checkpoint=1"], "give no checkpoint"),
        (["problem=no-such-problem"], "no problem 'no-such-problem'"),
    ],
)
def test_wrong_use_is_an_exception_with_the_reason(harbor, task, tmp_path, options, message):
    (tmp_path / "script").mkdir()
    kwargs = [word for option in options for word in ("--verifier-kwarg", option)]
    trial = harbor.run(task, tmp_path / "script", *VERIFIER, *kwargs)
    assert trial.rewards is None
    assert message in trial.steps[0]["exception_info"]["exception_message"]


def test_a_task_without_steps_names_its_checkpoint(harbor, tmp_path):
    """A task that somebody else wrote: the keyword arguments name everything."""
    files = {
        "task.toml": "", "instruction.md": "Solve it.", "tests/test.sh": "exit 1",
        "environment/Dockerfile": f"FROM {IMAGE}\nWORKDIR /srv/code\n",
    }  # fmt: skip
    environment = f"evaluation_environment={HITCOUNT / 'environment.yaml'}"
    words = ["problem=hitcount", "checkpoint=2", "workspace=/srv/code", environment]
    kwargs = [word for option in words for word in ("--verifier-kwarg", option)]
    script = solving(tmp_path / "script", SOLUTIONS / "checkpoint_2")
    task = write_files(tmp_path / "task", files)
    trial = harbor.run(task, script, *VERIFIER, *kwargs, "--agent-kwarg", "workspace=/srv/code")
    assert trial.result["exception_info"] is None
    assert trial.rewards == {"reward": 1, "strict": 1, "isolated": 1, "core": 1, "pass_rate": 1, "solved": 1}


def test_the_commands_of_the_page_work(harbor, tmp_path):
    """In a clone, with an image of the tests in the place of the reader's."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    page = blocks(DOCS / "how-to/harbor.md")
    (export,) = [
        line for block in page for line in block.text.splitlines() if line.startswith("$ slop-code export-task")
    ]
    (trial,) = [block.text for block in page if block.runner is not None]
    (job,) = [block for block in page if block.file is not None]
    slop_code = f"{sys.executable} -m slop_code {export.removeprefix('$ slop-code ')}"
    harbor.shell(f"{slop_code} --base-image {IMAGE}\n{trial}", tmp_path)
    (result,) = tmp_path.glob("jobs/*/*/result.json")
    rewards = trial_of(result).rewards
    assert rewards is not None
    assert (rewards["reward"], rewards["solved"]) == (0, 0)
    (tmp_path / str(job.file)).write_text(job.text)
    config = json.loads(harbor.shell(f"harbor run -c {job.file} -p tasks/larder --print-config", tmp_path))
    assert config["verifier"]["import_path"] == VERIFIER[1]
