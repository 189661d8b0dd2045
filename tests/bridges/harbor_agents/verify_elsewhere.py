"""`python verify_elsewhere.py TASK STEP FOLDER TRIAL`: the verifier with an environment that is no local container.

Prints the rewards as JSON, or the error.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from pathlib import Path

from harbor.models.task.task import Task
from harbor.models.trial.paths import TrialPaths

from slop_code import SlopCodeError
from slop_code.bridges.harbor import SlopCodeVerifier


class Elsewhere:
    """A folder with the methods of Harbor's environments that the verifier calls."""

    def __init__(self, task: Task, folder: Path) -> None:
        self.task_env_config, self._folder = task.config.environment, folder

    async def is_dir(self, path: str, user: str | None = None) -> bool:
        return (self._folder / path.lstrip("/")).is_dir()

    async def download_dir(self, source_dir: str, target_dir: Path) -> None:
        shutil.copytree(self._folder / source_dir.lstrip("/"), target_dir, symlinks=True, dirs_exist_ok=True)


async def main(task: Task, step: str, folder: Path, trial: Path) -> None:
    places = {"trial_paths": TrialPaths(trial), "environment": Elsewhere(task, folder)}
    try:
        verifier = SlopCodeVerifier(task=task, step_name=step, group_rates=True, **places)
        print(json.dumps((await verifier.verify()).rewards))
    except SlopCodeError as error:
        print(error)


if __name__ == "__main__":
    asyncio.run(main(Task(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])))
