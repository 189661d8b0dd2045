"""Evaluated runs of known agents: results, config.yaml and inference_result.json in the place of a harness."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml

from tests.factories import case, result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

GROUPS = ("Core", "Functionality", "Error", "Regression")
AGENTS = {
    "aurora": {"model": {"name": "aurora-large-20260101", "provider": "north"}, "thinking": "high"},
    "aurora-quick": {"model": {"name": "aurora-large-20260101", "provider": "north"}, "thinking": "none"},
    "basalt": {"model": {"name": "basalt-2", "provider": "south"}, "thinking": "high"},
    "cinder": {"model": {"name": "cinder-mini", "provider": "south"}, "thinking": "high"},
}
COMMON = {"agent": {"type": "solo", "version": "2.0.1"}, "prompt": "configs/prompts/just-solve.jinja"}


def write_agent_run(
    folder: Path,
    problems: Mapping[str, Sequence[str]],
    *,
    config: Mapping[str, Any] | None = None,
    usage: Mapping[str, Any] | None = None,
    submission: str | None = None,
) -> Path:
    """`{"words": ["++++", "+-++", "!"]}`: marks as for `write_run`. The tests are of the four groups in turn."""
    for name, checkpoints in problems.items():
        for number, marks in enumerate(checkpoints, start=1):
            failed = marks == "!"
            tests = [
                case(
                    f"test_{index}",
                    "passed" if mark == "+" else "failed",
                    group_type=GROUPS[index % 4],
                )
                for index, mark in enumerate("" if failed else marks)
            ]
            checkpoint = folder / name / f"checkpoint_{number}"
            result(
                tests,
                digests={"submission": f"{submission or folder}{name}{number}"},
                problem_name=name,
                checkpoint_name=f"checkpoint_{number}",
                infrastructure_failure_reason="killed" if failed else None,
            ).save(checkpoint / "evaluation.json")
            if usage is not None:
                document = {"elapsed": 90.5, "usage": {"steps": 12, **usage}}
                (checkpoint / "inference_result.json").write_text(json.dumps(document), encoding="utf-8")
    if config is not None:
        (folder / "config.yaml").write_text(yaml.safe_dump(dict(config)), encoding="utf-8")
    return folder


def write_twenty_runs(folder: Path) -> list[Path]:
    """Five runs of each of four agents; cinder has one problem fewer, and basalt a checkpoint without a verdict."""
    runs = []
    for agent_number, (agent, config) in enumerate(AGENTS.items()):
        for number in range(1, 6):
            good = 5 - agent_number + number % 3
            problems = {
                problem: ["+" * 8 if step + problem_number < good else "++++-+--" for step in range(4)]
                for problem_number, problem in enumerate(["corkboard", "larder", "rollcall"])
            }
            if agent == "cinder":
                del problems["rollcall"]
            if agent == "basalt" and number == 2:
                problems["larder"][3] = "!"
            tokens = {"input": 120_000 * number, "output": 9_000, "cache_read": 1_500_000}
            usage = {"cost": 0.25 * (4 - agent_number) + number / 100, "net_tokens": tokens}
            runs.append(
                write_agent_run(
                    folder / f"{agent}-{number}",
                    problems,
                    config={**COMMON, **config},
                    usage=None if agent == "cinder" else usage,
                )
            )
    return runs
