"""Evaluations by Inspect itself, with its local sandbox and a scripted model."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slop_code import evaluate
from slop_code.cli.main import run as run_command
from slop_code.evaluation.reward_values import REWARD_NAMES, mean_rewards, rewards_of
from tests.bridges.agent_programs import LARDER, PROGRAMS, run_process, snapshot, write_files
from tests.bridges.page_blocks import run_page

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.long


@pytest.fixture
def inspect_eval(bridge_python: Callable[[str], Path], cache: object, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """`inspect_eval([commands of checkpoint 1], [commands of checkpoint 2], environment=...)`."""
    python = bridge_python("inspect")

    def run(*commands: list[str], **options: Any) -> dict[str, Any]:
        plan = {"problem": str(LARDER), "commands": commands, "log": str(tmp_path / "logs"), **options}
        printed = run_process([python, PROGRAMS / "inspect_eval.py"], tmp_path, json.dumps(plan))
        return dict(json.loads(printed.splitlines()[-1]))

    return run


def command_line(*arguments: object) -> int:
    return run_command([*map(str, arguments)])


def expected(run: str, checkpoint: int) -> dict[str, float]:
    return rewards_of(evaluate(snapshot(run, checkpoint), LARDER, checkpoint))


def same(value: dict[str, float], other: dict[str, float]) -> bool:
    assert list(value) == list(REWARD_NAMES)
    return all(math.isclose(value[name], other[name]) or math.isnan(value[name] + other[name]) for name in REWARD_NAMES)


def test_an_agent_works_through_checkpoints_and_each_is_scored_before_the_next_is_shown(inspect_eval):
    found = inspect_eval([write_files(snapshot("steady", 1))], [write_files(snapshot("steady", 2))])
    assert found["error"] is None
    score = found["scores"]["problem_scorer"]
    rewards = [expected("steady", number) for number in (1, 2)]
    assert same(score["value"], mean_rewards(rewards))
    assert score["value"]["strict"] == 1
    assert all(same(value, mean_rewards([each])) for value, each in zip(found["intermediate"], rewards, strict=True))
    texts = [step.partition("\n")[0] for step in found["steps"]]
    second = texts.index("# Larder, part 2: shopping lists")
    assert texts[0] == "# Larder, part 1: reading and scaling recipes"
    assert texts[second - 1] == texts[-1] == "score"
    assert texts.count("score") == 2
    assert found["roles"].count("system") == 1
    assert found["results"]["strict"] == {"scored": 1, "unscored": 0, "mean": 1.0, "stderr": 0.0}
    assert score["metadata"]["checkpoint_2"]["provenance"]["digests"]["submission"]


def test_a_score_is_that_of_the_command_line_and_names_the_tests_that_failed(inspect_eval, tmp_path):
    found = inspect_eval([write_files(snapshot("drifting", 1))], [write_files(snapshot("drifting", 2))])
    score = found["scores"]["problem_scorer"]
    status = command_line("eval-snapshot", snapshot("drifting", 2), "-p", LARDER, "-c", 2, "-o", tmp_path / "out")
    stored = json.loads((tmp_path / "out/evaluation.json").read_text())
    kept = score["metadata"]["checkpoint_2"]
    assert status == 1
    assert (kept["pass_counts"], kept["total_counts"]) == (stored["pass_counts"], stored["total_counts"])
    assert kept["provenance"]["digests"]["tests"] == stored["provenance"]["digests"]["tests"]
    failed = [test["id"] for test in stored["tests"] if test["status"] != "passed"]
    assert failed
    assert all(name in score["explanation"] for name in failed)
    assert same(score["value"], mean_rewards([expected("drifting", 1), expected("drifting", 2)]))


def test_an_infrastructure_failure_is_unscored_and_not_0(inspect_eval, tmp_path):
    broken = tmp_path / "broken.yaml"
    broken.write_text("type: local\nname: broken\nsetup:\n  commands: [no-such-program]\n")
    found = inspect_eval([write_files(snapshot("steady", 1))], environment=str(broken))
    score = found["scores"]["problem_scorer"]
    assert math.isnan(score["value"])
    assert score["reason"] == "scoring_failed"
    assert "infrastructure failure: " in score["explanation"]
    assert [(each["scored"], each["unscored"]) for each in found["results"].values()] == [(0, 1)]


def test_epochs_are_reduced(inspect_eval):
    found = inspect_eval([write_files(snapshot("steady", 1))], epochs=2)
    assert found["results"]["strict"]["mean"] == 1
    assert found["results"]["regression_rate"]["scored"] == 0


def test_what_an_agent_left_at_its_limit_is_evaluated_for_the_checkpoints_that_it_did_not_reach(inspect_eval):
    found = inspect_eval([write_files(snapshot("steady", 1))], [write_files(snapshot("steady", 2))], message_limit=5)
    kept = found["scores"]["problem_scorer"]["metadata"]
    assert kept["checkpoint_1"]["rewards"]["strict"] == 1
    assert kept["checkpoint_2"]["rewards"]["strict"] == 0
    assert kept["checkpoint_2"]["rewards"]["regression_rate"] == 1


COMPOSE = """
services:
  default:
    image: {image}
    command: tail -f /dev/null
    init: true
    network_mode: none
    working_dir: /agent
"""
OWN_TAR = r"""printf '#!/bin/sh\necho no archive > "$3"\n' > /usr/bin/tar"""


@pytest.fixture
def compose_file(need_docker, tmp_path, monkeypatch) -> str:
    """For containers without a network, of the tests' own image."""
    need_docker()
    if "SLOP_CODE_TEST_COMPOSE" in os.environ:
        monkeypatch.setenv("DOCKER_CONFIG", os.environ["SLOP_CODE_TEST_COMPOSE"])
    if subprocess.run(["docker", "compose", "version"], capture_output=True).returncode != 0:
        reason = "docker has no compose here, which Inspect's Docker sandbox needs"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    file = tmp_path / "compose.yaml"
    file.write_text(COMPOSE.format(image=os.environ["SLOP_CODE_TEST_IMAGE"]))
    return str(file)


def test_a_workspace_comes_out_of_a_container(inspect_eval, compose_file):
    commands = [
        write_files(snapshot("steady", 1)),
        "ln -s /usr/bin/python3 python; head -c 9000000 /dev/urandom > large",
    ]
    found = inspect_eval(commands, compose=compose_file)
    assert found["scores"]["problem_scorer"]["value"]["strict"] == 1


def test_a_container_with_a_tar_of_the_agent_is_0_and_not_unscored(inspect_eval, compose_file):
    found = inspect_eval([write_files(snapshot("steady", 1)), OWN_TAR], compose=compose_file)
    assert set(found["scores"]["problem_scorer"]["value"].values()) == {0}


def test_a_container_that_the_agent_ended_is_0_and_not_unscored(inspect_eval, compose_file):
    found = inspect_eval([write_files(snapshot("steady", 1)), "kill -9 -1"], compose=compose_file)
    score = found["scores"]["problem_scorer"]
    assert set(score["value"].values()) == {0}
    assert "SandboxUnavailableError" in score["explanation"]


def test_a_score_that_an_agent_got_before_it_went_on_does_not_count(inspect_eval):
    """It reaches its limit after it wrote the program, and before it submits again."""
    found = inspect_eval([write_files(snapshot("steady", 1))], early_submit=True, message_limit=7)
    assert [value["strict"] for value in found["intermediate"]] == [0]
    assert found["scores"]["problem_scorer"]["value"]["strict"] == 1


def test_assets_are_in_the_sandbox_and_tests_are_not(inspect_eval, tmp_path):
    seen = tmp_path / "seen"
    inspect_eval([f"find . -type f > {seen}; cp -r . {tmp_path / 'workspace'}"])
    assert seen.read_text().split() == ["./.evaluation_tests/assets/units"]
    assert (tmp_path / "workspace/.evaluation_tests/assets/units").read_bytes() == (
        LARDER / "tests/assets/units"
    ).read_bytes()


FORGERY = """
mkdir .scbench; echo 1 > reward.txt; echo '{"strict": 1}' > .scbench/evaluation.json
echo 'def pytest_runtest_makereport(item, call): call.excinfo = None' > conftest.py
echo 'def test_a(): pass' > .evaluation_tests/test_checkpoint_1.py
ln -s /etc/passwd main.py; ln -s / root; ln -s ../../.. up
"""


def test_a_forged_workspace_gains_nothing(inspect_eval):
    """Reward files, a conftest, tests of its own, links out of it."""
    value = inspect_eval([FORGERY])["scores"]["problem_scorer"]["value"]
    assert [value[name] for name in ("strict", "isolated", "core", "core_rate")] == [0, 0, 0, 0]


def test_a_workspace_with_a_pipe_is_0_and_not_unscored(inspect_eval):
    score = inspect_eval([write_files(snapshot("steady", 1)), "mkfifo pipe"])["scores"]["problem_scorer"]
    assert set(score["value"].values()) == {0}
    assert "'./pipe': it is neither a file, a folder nor a symbolic link" in score["explanation"]


@pytest.mark.parametrize("word", ["mktemp", "dd if="])
def test_a_provider_that_fails_while_the_workspace_is_read_is_unscored_and_not_0(inspect_eval, word):
    score = inspect_eval([write_files(snapshot("steady", 1))], provider_fails=word)["scores"]["problem_scorer"]
    assert math.isnan(score["value"])
    assert "the sandbox failed: RuntimeError: no answer" in score["explanation"]


def test_files_that_change_while_they_are_read_are_a_submission_like_any_other(inspect_eval, tmp_path):
    """A daemon fills the workspace until the first checkpoint was scored, as the second one lets it end."""
    going, ended = tmp_path / "going", tmp_path / "ended"
    going.touch()
    os.mkfifo(ended)
    writer = f"while [ -e {going} ]; do date > log; head -c 300000 /dev/zero > grows; done; : > {ended}"
    daemon = f"nohup timeout 300 sh -c '{writer}' >/dev/null 2>&1 & while ! [ -s grows ]; do sleep 0.1; done"
    large = "head -c 9000000 /dev/urandom > large"  # more than is read at once
    stop = f"rm {going} && timeout 300 cat {ended}"
    found = inspect_eval([write_files(snapshot("steady", 1)), large, daemon], [stop])
    assert not going.exists()
    assert found["intermediate"][0]["strict"] == 1


def test_a_workspace_that_cannot_be_packed_is_0_and_not_unscored(inspect_eval):
    """In the local sandbox: a folder that is gone."""
    found = inspect_eval([write_files(snapshot("steady", 1)), 'rm -rf "$PWD"'])
    assert set(found["scores"]["problem_scorer"]["value"].values()) == {0}


def test_the_commands_of_the_page_run(bridge_python, cache, tmp_path):
    """The task is found by its entry point, and exported scores, of a run that passes, replace those of its log."""
    settings = {"INSPECT_LOG_FORMAT": "json", "PYTHONPATH": str(PROGRAMS / "offline")}
    run_page("how-to/inspect.md", Path(__file__), bridge_python("inspect"), tmp_path, settings)
    logs = [json.loads(path.read_text()) for path in (tmp_path / "logs").glob("*.json")]
    scores = {log["eval"]["task"]: next(iter(log["samples"][0]["scores"].values())) for log in logs}
    assert {task: score["value"]["strict"] for task, score in scores.items()} == {"slop_code/problem": 1, "recipes": 0}
