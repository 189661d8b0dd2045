"""Base of the sandboxes on this machine's own system: they share its interpreter, its uv and its folders."""

from __future__ import annotations

import contextlib
import functools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from slop_code.execution.cache import remove_path
from slop_code.execution.installation.tool_environment import HostToolBuilder
from slop_code.execution.python_version import HostPython, host_python, own_python
from slop_code.execution.sandbox import UnusableSetupError
from slop_code.execution.submission import UNUSABLE
from slop_code.execution.trees.manifest import ARCHIVES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from slop_code.execution.cache import Cache
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.execution.sandbox import SetupBox, SetupJob, ToolBuilder


class HostSetupBox:
    """Part of the boxes for set-up that is the same in all sandboxes of this machine."""

    job: SetupJob

    def put(self, name: str, text: str) -> str:
        path = self.job.scratch / "tmp" / name
        path.write_text(text, encoding="utf-8")
        return str(path)


class HostSandbox(ABC):
    name: str

    def __init__(self, spec: EnvironmentSpec, cache: Cache, progress: ProgressCallback = lambda _: None) -> None:
        self.spec, self.cache, self.progress = spec, cache, progress

    def image(self) -> str | None:
        return None

    @property
    def disk(self) -> str:
        return str(self.cache.root)

    def identity(self) -> Sequence[object]:
        return [self.name, *own_python().identity]

    def variables(self) -> Mapping[str, str]:
        return {}

    @functools.cached_property
    def python(self) -> HostPython:
        """The submission's interpreter."""
        return host_python(self.spec.python_request())

    def subject_python(self) -> str:
        return self.python.path

    def subject_version(self) -> str | None:
        return self.python.version

    def subject_identity(self) -> Sequence[object]:
        return [self.name, *self.python.identity]

    def tool_builder(self, scratch: Path) -> AbstractContextManager[ToolBuilder]:
        return HostToolBuilder(scratch, self.cache, self.spec.timeouts.tools)

    @abstractmethod
    def prepare_setup(self, job: SetupJob) -> SetupBox:
        """A box that uses the scratch folder, which has env, tmp and home already."""

    @contextlib.contextmanager
    def setup_box(self, job: SetupJob) -> Iterator[SetupBox]:
        for name in ("env", "tmp", "home"):
            (job.scratch / name).mkdir()
        yield self.prepare_setup(job)
        kept = ("env", "layer") if job.keep_workspace else ("env",)
        for path in job.scratch.iterdir():
            if path.name not in kept:
                remove_path(path)

    def check_tools(self, entry: Path) -> None:
        if not (self.cache.uv / ARCHIVES).is_dir():
            raise ValueError("uv's part of it is gone")

    def check_subject(self, entry: Path) -> None:
        env = entry / "env"
        try:
            is_whole = env.is_dir() and (not any(env.iterdir()) or (env / "bin/python").exists())
        except OSError as error:
            if error.errno not in UNUSABLE:  # no submission causes an error of the disk
                raise
            is_whole = False
        if not is_whole:
            raise UnusableSetupError("the environment is damaged")
