"""An agent for Harbor that follows a script: for step N it copies `folder/N` and runs `folder/N.sh`, if they exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent


class ScriptedAgent(BaseAgent):
    def __init__(self, *arguments: Any, folder: str, workspace: str = "/workspace", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._folder, self._workspace, self._step = Path(folder), workspace, 0

    @staticmethod
    def name() -> str:
        return "scripted"

    def version(self) -> str:
        return "1"

    async def setup(self, environment: Any) -> None:
        pass

    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        self._step += 1
        (self.logs_dir / f"instruction-{self._step}.md").write_text(instruction)
        files, script = self._folder / str(self._step), self._folder / f"{self._step}.sh"
        if files.is_dir():
            await environment.upload_dir(files, self._workspace)
        if script.is_file():
            done = await environment.exec(script.read_text())
            assert done.return_code == 0, done.stdout
