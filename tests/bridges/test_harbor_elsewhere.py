"""The verifier in environments of Harbor that are no containers of this machine; without Docker."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slop_code import evaluate
from slop_code.bridges.harbor_rewards import harbor_rewards
from slop_code.bridges.harbor_task import export_harbor_task
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.reward_values import refused_rewards, rewards_of
from tests.bridges.harbor_runs import ROOT, Harbor

if TYPE_CHECKING:
    from collections.abc import Callable

    from slop_code.execution.cache import Cache

pytestmark = pytest.mark.long

HITCOUNT = ROOT / "examples/problems/hitcount"
SCRIPT = Path(__file__).parent / "harbor_agents/verify_elsewhere.py"


@pytest.fixture
def verify(bridge_python: Callable[[str], Path], cache: Cache, tmp_path: Path) -> Callable[[], str]:
    """The verifier's answer for the task in `tmp_path/task` and the file system in `tmp_path/box`."""
    harbor = Harbor(bridge_python("harbor"), tmp_path)
    export_harbor_task(ProblemConfig.from_yaml(HITCOUNT), tmp_path / "task", "image")
    words = [str(harbor.python), str(SCRIPT), "task", "checkpoint_2", "box", "trial"]
    return lambda: harbor.shell(f"export SCBENCH_CACHE_DIR={cache.root}; {' '.join(words)}", tmp_path)


def test_the_rewards_are_those_of_the_folder_that_harbor_downloads(verify, tmp_path):
    old = HITCOUNT / "solutions/checkpoint_1"
    shutil.copytree(old, tmp_path / "box/workspace")
    rewards = json.loads(verify())
    assert rewards == harbor_rewards(rewards_of(evaluate(old, HITCOUNT, 2)), 0.0, group_rates=True)
    assert "regression_rate" in rewards
    assert (tmp_path / "trial/slop-code/hitcount/checkpoint_2/evaluation.json").is_file()


def test_a_workspace_that_is_not_there_is_0_for_everything(verify, tmp_path):
    assert json.loads(verify()) == harbor_rewards(refused_rewards(), 0.0, group_rates=True)
    assert "is no folder" in (tmp_path / "trial/slop-code/hitcount/checkpoint_2/no-workspace.txt").read_text()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[verifier]", '[verifier]\nenvironment_mode = "separate"', "the verifier has an environment of its own"),
        ('problem = "hitcount"', 'problem = "../hitcount"', "names no problem"),
        ('problem = "hitcount"\nversion = "1"', 'problem = "hitcount"\nversion = "2"', "the task is of version 2"),
        ('workspace = "/workspace"', 'workspace = "/"', "expected an absolute path below the root"),
    ],
)
def test_a_task_that_does_not_fit_is_refused(verify, tmp_path, old, new, message):
    config = tmp_path / "task/task.toml"
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new))
    assert message in verify()
