"""Download of the workspace from an agent's container, whose processes may still run and are all hostile.

Harbor's own download lets the command line of the engine unpack in the host's file system: it makes devices, has no
limit, and an absolute link that a process of the agent puts in the place of a folder meanwhile is followed. So the
engine's archive is read here instead, while the container is paused. No program of the container takes part.
"""

from __future__ import annotations

import contextlib
import functools
import time
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code._io import os_error_text, tail
from slop_code.bridges.harbor_archive import unpack_workspace
from slop_code.errors import InfrastructureError, SubmissionError
from slop_code.execution.cache import remove_tree
from slop_code.execution.cancellation import EvaluationCancelledError
from slop_code.execution.process import MAX_TAIL, open_piped
from slop_code.execution.trees.archive import read_members
from slop_code.execution.trees.tree_writer import ArchiveError
from slop_code.execution.worker_threads import WorkerThreads

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slop_code.execution.docker.engine import Engine

DOWNLOAD_S = 3600.0
"""The engine packs 16 GiB, the maximal size of a submission, in a fraction of it."""

THREADS = 4
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class AgentContainer:
    engine: Engine
    name: str

    async def download(self, path: str, target: Path) -> None:
        """Make the folder `target` with the files of the workspace.

        Raises SubmissionError where the agent left no workspace that can be read, and InfrastructureError where the
        engine fails.
        """
        threads = _threads()
        future = threads.submit(self._download, path, target)
        await threads.wait_for_async(future)
        try:
            future.result()
        except CancelledError:
            raise EvaluationCancelledError from None

    def _download(self, path: str, target: Path) -> None:
        with self._paused():
            for _ in range(ATTEMPTS):
                reason = self._copy(path, target)
                if reason is None:
                    return
                remove_tree(target)
            self._check()
        raise SubmissionError(reason)

    def _copy(self, path: str, target: Path) -> str | None:
        """The reason for which there is no such folder, or no whole one; None if `target` has all of it."""
        log, until = target.with_name("download.log"), time.monotonic() + DOWNLOAD_S
        try:
            with open_piped([self.engine.binary, "cp", f"{self.name}:{path}", "-"], log) as child:
                members = read_members(lambda size: child.read(size, until))
                return None if unpack_workspace(members, target) else f"{path} is no folder"
        except ArchiveError as error:
            return f"{path} cannot be read: its archive has {error.fact}"
        except EOFError:  # the agent's names are in the text, so that it says nothing about the engine
            return f"{path} cannot be read: {tail(log, MAX_TAIL).strip() or 'its archive ends early'}"
        except TimeoutError as error:
            if error.errno is not None:  # of the disk that it is written to
                raise InfrastructureError(os_error_text(error, target)) from error
            self._check()
            raise SubmissionError(f"{path} cannot be read within {DOWNLOAD_S:g} s") from None
        except OSError as error:
            raise InfrastructureError(os_error_text(error, target)) from error

    @contextlib.contextmanager
    def _paused(self) -> Iterator[None]:
        """Its processes change nothing meanwhile.

        A container that has stopped cannot be paused, nor can those of rootless engines; it is read all the same.
        """
        is_paused = self.engine.run("pause", self.name).exit_code == 0
        try:
            yield
        finally:
            if is_paused:
                self.engine.check_output("unpause", self.name)

    def _check(self) -> None:
        """An InfrastructureError unless the engine still has the container.

        It need not run: the engine reads stopped containers as well, and an agent can end its own.
        """
        self.engine.check_output("container", "inspect", "--format", "{{.Id}}", self.name)


@functools.cache
def _threads() -> WorkerThreads:
    return WorkerThreads(THREADS, "download")
