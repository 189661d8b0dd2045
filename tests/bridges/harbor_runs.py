"""Trials of Harbor, as users start them: `harbor run` with a scripted agent, in containers of the tests' own image."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
VERIFIER = ("--verifier", "slop_code.bridges.harbor:SlopCodeVerifier")
QUICK_END = "services: {main: {stop_grace_period: 0s}}\n"
"""The main process of Harbor's containers does not end by itself when it is asked to."""

AGENT = ("--agent", "scripted_agent:ScriptedAgent")


@dataclass(frozen=True, slots=True)
class HarborTrial:
    folder: Path
    result: dict[str, Any]

    @property
    def rewards(self) -> dict[str, float] | None:
        return (self.result["verifier_result"] or {}).get("rewards")

    @property
    def steps(self) -> list[dict[str, Any]]:
        return list(self.result["step_results"])

    @property
    def step_rewards(self) -> list[dict[str, float] | None]:
        return [(step["verifier_result"] or {}).get("rewards") for step in self.steps]


@dataclass(frozen=True, slots=True)
class Harbor:
    python: Path
    folder: Path
    """Home of the user, and jobs."""

    cache: Path | None = None
    """None: the usual one of that user."""

    problems: Path = ROOT / "examples" / "problems"

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
        compose = os.environ.get("SLOP_CODE_TEST_COMPOSE")
        return {
            **kept,
            **({"DOCKER_CONFIG": compose} if compose else {}),
            **({"SCBENCH_CACHE_DIR": str(self.cache)} if self.cache else {}),
            "HARBOR_TELEMETRY": "0",
            "HOME": str(self.folder),
            "PATH": f"{self.python.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(HERE / "harbor_agents"),
            "SCBENCH_PROBLEMS_DIR": str(self.problems),
        }

    def shell(self, command: str, cwd: Path) -> str:
        done = subprocess.run(
            ["bash", "-c", command], cwd=cwd, env=self.environment(), capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, task: Path, script: Path, *options: str) -> HarborTrial:
        """One trial of the task. `script` is the folder that the agent follows."""
        jobs = self.folder / "jobs"
        name = f"job-{len([*jobs.glob('*')])}"
        argv = [self.python.with_name("harbor"), "run", "--path", task, "--jobs-dir", jobs, "--job-name", name, "--yes"]
        quick = self.folder / "quick.yaml"
        quick.write_text(QUICK_END)
        argv += ["--extra-docker-compose", quick, *AGENT, "--agent-kwarg", f"folder={script}", *options]
        done = subprocess.run(
            [*map(str, argv)], cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=600
        )
        trials = [*jobs.glob(f"{name}/*/result.json")]
        assert len(trials) == 1, done.stdout + done.stderr
        return trial_of(trials[0])


def trial_of(result: Path) -> HarborTrial:
    return HarborTrial(result.parent, json.loads(result.read_text()))
