"""What every sandbox on this machine's own system has in common: its interpreter, its uv, its folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.execution.cache import remove_tree
from slop_code.execution.interpreter import base_python, python_identity
from slop_code.execution.tool_environment import HostToolBuilder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from slop_code.execution.cache import Cache
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.execution.sandbox import ToolBuilder


class HostSandbox:
    name: str

    def __init__(self, spec: EnvironmentSpec, cache: Cache, progress: ProgressCallback = lambda _: None) -> None:
        self.spec, self.cache = spec, cache

    def image(self) -> str | None:
        return None

    def identity(self) -> Sequence[object]:
        return [self.name, *python_identity()]

    def variables(self) -> Mapping[str, str]:
        return {}

    def subject_python(self) -> str:
        return base_python()

    def tool_builder(self, scratch: Path) -> AbstractContextManager[ToolBuilder]:
        return HostToolBuilder(scratch, self.cache)

    def check_tools(self, kept: Path) -> None:
        if not (self.cache.uv / "archive-v0").is_dir():
            raise ValueError("what uv kept of it is gone")

    def check_subject(self, kept: Path) -> None:
        env = kept / "env"
        if not env.is_dir() or (any(env.iterdir()) and not (env / "bin/python").exists()):
            raise ValueError("the environment is damaged")


def tidy(scratch: Path, keep: Sequence[str]) -> None:
    """Of what set-up used, only what is kept stays."""
    for path in scratch.iterdir():
        if path.name in keep:
            continue
        remove_tree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
