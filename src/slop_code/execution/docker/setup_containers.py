"""Containers with network: for the environment of the test tools, and for the set-up of submissions."""

from __future__ import annotations

import contextlib
import itertools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from slop_code.errors import InfrastructureError
from slop_code.execution.cache import entry_for_scratch
from slop_code.execution.concurrency import start_thread
from slop_code.execution.docker import container_arguments as c
from slop_code.execution.docker.extra_mounts import Mount
from slop_code.execution.docker.init_client import START_S, certificate_variables, certificates, wait_until_ready
from slop_code.execution.environment import MAX_WORKSPACE
from slop_code.execution.installation.tool_environment import compile_bytecode, tool_failure, tools_too_late
from slop_code.execution.process import NoAnswerError, ProcessResult, open_piped, run
from slop_code.execution.sandbox import PATH, SetupJob, UnusableSetupError
from slop_code.execution.submission import RESERVED
from slop_code.execution.trees.archive import pack_end, pack_tree
from slop_code.execution.uv import network_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from slop_code.execution.docker.docker_sandbox import DockerSandbox
    from slop_code.execution.docker.engine import Engine
    from slop_code.execution.submission import TreeSummary

MAX_ROOT_BYTES = 10 << 30
"""Bytes that set-up may write outside the workspace."""

LOSES_CHANGES = (
    "docker.runtime: {} keeps what a container writes to itself, so that set-up would be lost; "
    "runsc needs the argument --overlay2=none"
)
FULL_DISK_ENDS = ("no space left on device", "disk quota exceeded")
JUDGE_PYTHON = ">=3.11"
PRINT_INTERPRETER = (
    "import os, platform, sys; print(os.path.realpath(sys._base_executable)); print(platform.python_version())"
)


@contextlib.contextmanager
def new_volume(docker: DockerSandbox, scratch: Path, what: str) -> Iterator[str]:
    """A new volume, which is removed again unless `record_objects` has recorded it for the cache entry."""
    volume = c.ContainerNames().of(what)
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


@dataclass(frozen=True, slots=True)
class CommandContainerSpec:
    mounts: Sequence[Mount]
    steps: Sequence[str]
    """Arguments of `slopbox init`."""

    parts: Iterable[bytes] = ()
    """Tar archive of the files that are sent, without its end."""

    expected: TreeSummary | None = None
    """The size of a mounted folder that is copied."""

    of_submission: bool = False
    """Set-up of a submission: the commands see nothing of /slop, and have the runtime of the subject."""


@contextlib.contextmanager
def command_container(docker: DockerSandbox, log: Path, spec: CommandContainerSpec) -> Iterator[str]:
    """Name of a container that waits for commands until the block ends."""
    name = c.ContainerNames().of("commands")
    container = c.ContainerSpec(
        owner=docker.owner,
        image=docker.image(),
        network=docker.settings.network,
        runtime=docker.settings.runtime if spec.of_submission else None,
        mounts=[docker.support_volume, *docker.mounts, *spec.mounts],
        enforced=docker.engine_state.info.enforced,
    )
    trees = {"net": c.NET, "workspace": docker.settings.workdir}
    steps = [*c.unpack_steps(trees, docker.setup_user()), *spec.steps]
    arguments = c.command_container_arguments(name, container, steps, covered=spec.of_submission)
    with open_piped([docker.engine.binary, *arguments], log) as child:
        try:
            join_sender = start_thread(child.send, itertools.chain(certificates(), spec.parts, [pack_end()]))
            wait_until_ready(docker.engine, child, log, spec.expected)
            join_sender()
            yield name
        finally:
            docker.engine.remove([name])


@contextlib.contextmanager
def open_tool_builder(docker: DockerSandbox, scratch: Path) -> Iterator[DockerToolBuilder]:
    user = docker.box_user()
    with new_volume(docker, scratch, "tools") as volume:
        mounts = [Mount(volume, c.UV_CACHE, readonly=False)]
        with command_container(
            docker, scratch / "log", CommandContainerSpec(mounts, ["--chown", c.UV_CACHE, *user.words])
        ) as name:
            yield DockerToolBuilder(docker, name, user, scratch)
        docker.record_objects(scratch, {"tools": volume})
    (scratch / "log").unlink()


@contextlib.contextmanager
def open_setup_box(docker: DockerSandbox, job: SetupJob) -> Iterator[DockerSetupBox]:
    """The container becomes an image after set-up, and the workspace a volume where it is kept."""
    if not docker.runtime.keeps_changes:
        raise InfrastructureError(LOSES_CHANGES.format(docker.settings.runtime))
    user, workspace = docker.setup_user(), docker.settings.workdir
    source, measured = docker.source(job.submission)
    steps = ["--copy", c.SOURCE, workspace, *user.words] if source else []
    steps += ["--mkdir", c.SUBJECT_ENV, "755", "--chown", c.SUBJECT_ENV, *user.words]
    parts = () if source else pack_tree(job.submission, "workspace", owner=user.owner, without=RESERVED)
    with new_volume(docker, job.scratch, "layer") as volume:
        mounts = [Mount(volume, workspace, readonly=False), *([source] if source else [])]
        spec = CommandContainerSpec(mounts, steps, parts, measured if source else None, of_submission=True)
        with command_container(docker, job.scratch / "log", spec) as name:
            yield DockerSetupBox(docker, name, user, job)
            if job.discard:
                return
            image = _commit(docker, name, job.scratch)
        try:
            with _blaming_content(docker, job.scratch):
                docker.check_mount_targets(image)
            if job.keep_workspace:
                (job.scratch / "measured").write_text(_measure(docker, volume, job.scratch))
        except BaseException:
            docker.engine.remove(images=[image])
            raise
        docker.record_objects(job.scratch, {"image": image, **({"layer": volume} if job.keep_workspace else {})})
    for name in ("log", "output"):
        (job.scratch / name).unlink(missing_ok=True)


def _commit(docker: DockerSandbox, container: str, scratch: Path) -> str:
    """The image that the container becomes."""
    with _blaming_content(docker, scratch):
        written = docker.engine.written_size(container)
        if written > MAX_ROOT_BYTES:
            raise UnusableSetupError(f"it wrote {written} bytes outside the workspace, more than {MAX_ROOT_BYTES}")
        return docker.engine.commit(container, entry_label(scratch), START_S)


def _measure(docker: DockerSandbox, volume: str, scratch: Path) -> str:
    """Entries and bytes of the workspace."""
    with _blaming_content(docker, scratch):
        measured = docker.measure(volume)
    size = int(measured.split()[1])
    if size > MAX_WORKSPACE:
        limit = f"more than {MAX_WORKSPACE}, and in containers it is in memory"
        raise UnusableSetupError(f"the workspace has {size} bytes, {limit}")
    return measured


@contextlib.contextmanager
def _blaming_content(docker: DockerSandbox, scratch: Path) -> Iterator[None]:
    """Blames the content of the set-up for a failure of the block, if the engine succeeds without that content.

    A full disk is never blamed on the content: MAX_ROOT_BYTES bounds what set-up can write. Only the end of the message
    is read, which the system wrote; the rest may be the name of a file.
    """
    try:
        yield
    except InfrastructureError as error:
        if str(error).strip().lower().endswith(FULL_DISK_ENDS):
            raise
        _check_engine(docker, scratch)
        late = isinstance(error, NoAnswerError)
        raise UnusableSetupError(f"the engine cannot keep or use it: {error}", late=late) from error


def _check_engine(docker: DockerSandbox, scratch: Path) -> None:
    """Raises where the engine fails with a container that did nothing."""
    name = c.ContainerNames().of("probe")
    images: list[str] = []
    docker.check_mount_targets(docker.image())
    try:
        docker.engine.check_output("create", "--name", name, *c.COMMON, *c.labels(docker.owner), docker.image(), c.BOX)
        docker.engine.written_size(name)
        images.append(docker.engine.commit(name, entry_label(scratch), START_S))
    finally:
        docker.engine.remove([name], images=images)


def put_file(engine: Engine, container: str, scratch: Path, path: str, text: str) -> str:
    """Write a file into the container and return its path. Docker copies nothing into a tmpfs, such as /tmp."""
    file = scratch / "put"
    file.write_text(text)
    file.chmod(0o644)
    engine.check_output("cp", str(file), f"{container}:{path}")
    file.unlink()
    return path


@dataclass(frozen=True, slots=True)
class DockerSetupBox:
    docker: DockerSandbox
    container: str
    user: c.User
    job: SetupJob

    def put(self, name: str, text: str) -> str:
        return put_file(self.docker.engine, self.container, self.job.scratch, f"{c.SUBJECT_ENV}/{name}", text)

    def run(self, command: Sequence[str], timeout: float) -> ProcessResult:
        environment = {**self.job.environment, **certificate_variables()}
        words = [c.BOX, "merge-output", *command]
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
        return put_file(self.docker.engine, self.container, self.scratch, f"/slop/{name}", text)

    def python(self) -> tuple[str, str]:
        """The image's own where it is recent enough, else an interpreter that uv downloads next to the packages."""
        self.uv("uv", ["venv", "--quiet", "--python", JUDGE_PYTHON, f"{self.folder}/probe"])
        command = ["python", "-c", PRINT_INTERPRETER]
        output = self.uv("uv", ["run", "--no-project", "--python", f"{self.folder}/probe", *command])
        path, version = output.splitlines()
        return path, version

    def uv(self, tool: str, arguments: Sequence[str]) -> str:
        environment = {
            "PATH": f"{c.SUPPORT}/bin:{self.docker.variables().get('PATH') or PATH}", "HOME": c.HOME,
            "UV_CACHE_DIR": c.UV_CACHE, "UV_PYTHON_INSTALL_DIR": f"{c.UV_CACHE}/python", "UV_NO_CONFIG": "1",
            "UV_COMPILE_BYTECODE": compile_bytecode(tool), "UV_LINK_MODE": "copy",
            **network_variables(), **certificate_variables(),
        }  # fmt: skip
        argv = [f"{c.SUPPORT}/bin/{tool}", *arguments]
        words = c.exec_arguments(self.container, self.user, self.folder, environment, argv)
        timeout = self.docker.spec.timeouts.tools
        try:
            answer = self.docker.engine.run(*words, timeout=timeout)
        except NoAnswerError:
            raise tools_too_late(argv, timeout) from None
        if answer.exit_code != 0:
            raise tool_failure(argv, answer.exit_code, answer.errors, self.docker.disk)
        return answer.output
