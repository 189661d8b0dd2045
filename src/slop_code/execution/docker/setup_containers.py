"""Where containers are made ready: the tests' environment, and the subject's set-up."""

from __future__ import annotations

import contextlib
import itertools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from slop_code.execution.archive import pack_end, pack_tree
from slop_code.execution.cache import entry_for_scratch
from slop_code.execution.concurrency import start_thread
from slop_code.execution.docker import container_arguments as c
from slop_code.execution.docker.extra_mounts import Mount
from slop_code.execution.docker.init_client import START_S, certificate_variables, certificates, ready
from slop_code.execution.interpreter import network_variables
from slop_code.execution.process import ProcessResult, open_piped, run
from slop_code.execution.sandbox import PATH, SetupJob
from slop_code.execution.submission import RESERVED
from slop_code.execution.tool_environment import WARM_S, compiled, tools_failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from slop_code.execution.docker.docker_sandbox import DockerSandbox
    from slop_code.execution.tree_walk import TreeSummary

JUDGE_PYTHON = ">=3.11"
BASE = "import os, platform, sys; print(os.path.realpath(sys._base_executable)); print(platform.python_version())"


@contextlib.contextmanager
def new_volume(docker: DockerSandbox, scratch: Path, what: str) -> Iterator[str]:
    """One that is removed again unless `Docker.keep` has noted it for the cache's entry."""
    volume = c.Names().of(what)
    docker.engine.check_output("volume", "create", *c.labels(docker.owner, entry_label(scratch)), volume)
    try:
        yield volume
    except BaseException:
        docker.engine_state.objects.discard(volume)
        raise
    finally:
        if volume not in docker.engine_state.objects:
            docker.engine.remove(volumes=[volume])


def entry_label(scratch: Path) -> str:
    return quote(str(entry_for_scratch(scratch)), safe="/")


@contextlib.contextmanager
def worker(
    docker: DockerSandbox,
    log: Path,
    mounts: Sequence[Mount],
    steps: Sequence[str],
    parts: Iterable[bytes] = (),
    expected: TreeSummary | None = None,
    *,
    covered: bool = False,
) -> Iterator[str]:
    """A container that waits for commands until the block ends; its name."""
    name = c.Names().of("worker")
    trees = {"net": c.NET, "workspace": docker.settings.workdir}
    arguments = c.worker_arguments(
        name,
        owner=docker.owner,
        image=docker.image(),
        network=docker.settings.network,
        mounts=[docker.support_volume, *docker.mounts, *mounts],
        steps=[*c.unpack_steps(trees, docker.setup_user()), *steps],
        covered=covered,
    )
    with open_piped([docker.engine.binary, *arguments], log) as child:
        try:
            sent = start_thread(child.send, itertools.chain(certificates(), parts, [pack_end()]))
            ready(docker.engine, child, log, expected)
            sent()
            yield name
        finally:
            docker.engine.remove([name])


@contextlib.contextmanager
def open_tool_builder(docker: DockerSandbox, scratch: Path) -> Iterator[DockerToolBuilder]:
    user = docker.box_user()
    with new_volume(docker, scratch, "tools") as volume:
        mounts = [Mount(volume, c.UV_CACHE, readonly=False)]
        with worker(docker, scratch / "log", mounts, ["--own", c.UV_CACHE, *user.words]) as name:
            yield DockerToolBuilder(docker, name, user, scratch)
        docker.keep(scratch, {"tools": volume})
    (scratch / "log").unlink()


@contextlib.contextmanager
def open_setup_box(docker: DockerSandbox, job: SetupJob) -> Iterator[DockerSetupBox]:
    """What the commands leave becomes an image, and a volume where the workspace is kept."""
    user, workspace = docker.setup_user(), docker.settings.workdir
    source, measured = docker.source(job.submission)
    steps = ["--copy", c.SOURCE, workspace, *user.words] if source else []
    steps += ["--mkdir", c.SUBJECT_ENV, "755", "--own", c.SUBJECT_ENV, *user.words]
    parts = () if source else pack_tree(job.submission, "workspace", owner=user.owner, without=RESERVED)
    with new_volume(docker, job.scratch, "layer") as volume:
        mounts = [Mount(volume, workspace, readonly=False), *([source] if source else [])]
        expected = measured if source else None
        with worker(docker, job.scratch / "log", mounts, steps, parts, expected, covered=True) as name:
            yield DockerSetupBox(docker, name, user, job)
            image = docker.engine.commit(name, entry_label(job.scratch), START_S)
        docker.check_places(image)
        if job.keep_workspace:
            (job.scratch / "measured").write_text(docker.measure(volume))
        docker.keep(job.scratch, {"image": image, **({"layer": volume} if job.keep_workspace else {})})
    for left in ("log", "output"):
        (job.scratch / left).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class DockerSetupBox:
    docker: DockerSandbox
    container: str
    user: c.User
    job: SetupJob

    def run(self, command: Sequence[str], timeout: float) -> ProcessResult:
        environment = {**self.job.environment, **certificate_variables()}
        words = [c.BOX, "merge", *command]
        arguments = c.exec_arguments(self.container, self.user, self.docker.settings.workdir, environment, words)
        argv = [self.docker.engine.binary, *arguments]
        return run(argv, env=os.environ, log=self.job.scratch / "output", timeout=timeout)


@dataclass(slots=True)
class DockerToolBuilder:
    """uv in a container of the image."""

    docker: DockerSandbox
    container: str
    user: c.User
    scratch: Path
    folder: str = "/tmp"

    def put(self, name: str, text: str) -> str:
        file = self.scratch / "put"
        file.write_text(text)
        file.chmod(0o644)
        self.docker.engine.check_output("cp", str(file), f"{self.container}:/slop/{name}")
        file.unlink()
        return f"/slop/{name}"

    def python(self) -> tuple[str, str]:
        """The image's own where it is recent enough, else one that uv fetches and keeps beside the packages."""
        self.uv("uv", ["venv", "--quiet", "--python", JUDGE_PYTHON, f"{self.folder}/probe"])
        told = self.uv("uv", ["run", "--no-project", "--python", f"{self.folder}/probe", "python", "-c", BASE])
        path, version = told.splitlines()
        return path, version

    def uv(self, tool: str, arguments: Sequence[str]) -> str:
        environment = {
            "PATH": f"{c.SUPPORT}/bin:{self.docker.variables().get('PATH') or PATH}", "HOME": c.HOME,
            "UV_CACHE_DIR": c.UV_CACHE, "UV_PYTHON_INSTALL_DIR": f"{c.UV_CACHE}/python", "UV_NO_CONFIG": "1",
            "UV_COMPILE_BYTECODE": compiled(tool), "UV_LINK_MODE": "copy",
            **network_variables(), **certificate_variables(),
        }  # fmt: skip
        argv = [f"{c.SUPPORT}/bin/{tool}", *arguments]
        words = c.exec_arguments(self.container, self.user, self.folder, environment, argv)
        answer = self.docker.engine.run(*words, timeout=WARM_S)
        if answer.exit_code != 0:
            raise tools_failure(argv, answer.exit_code, answer.errors)
        return answer.output
