"""Sandbox of two containers of the same image: the judge's without network, the subject's joined to its loopback.

The judge's process 1 is `slopbox init`: it reads its files from its standard input, waits for the subject's
container, runs pytest without any privilege and sends the reports to its standard output. When the evaluator is
gone, that input ends and both containers with it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from slop_code._io import digest_of
from slop_code.errors import ConfigError, InfrastructureError
from slop_code.execution.concurrency import run_concurrently, start_thread
from slop_code.execution.docker import container_arguments as c
from slop_code.execution.docker.container_runtime import RuntimeProbe, missing_runtime_reason, probe_runtime
from slop_code.execution.docker.engine import Engine
from slop_code.execution.docker.engine_info import EngineInfo, limits_in_force, read_info
from slop_code.execution.docker.extra_mounts import Mount, extra_mounts
from slop_code.execution.docker.init_client import finish, forward_stdin, returned_folders, wait_until_ready
from slop_code.execution.docker.owners import OBJECTS_FILE, owner_label, remove_abandoned_objects
from slop_code.execution.docker.setup_containers import new_volume, open_setup_box, open_tool_builder
from slop_code.execution.docker.support_volume import build_support_files, support_identity
from slop_code.execution.environment import HANDED_SIZE, MAX_WORKSPACE
from slop_code.execution.helper import LAUNCHER
from slop_code.execution.process import open_piped
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.execution.python_version import FIND, REQUESTS
from slop_code.execution.sandbox import (
    SUBJECT_BOX_ENDED,
    BoxLayout,
    JudgeJob,
    JudgeResult,
    SetupJob,
    launcher_settings,
)
from slop_code.execution.submission import RESERVED, TreeSummary, summarize
from slop_code.execution.trees.archive import pack_end, pack_file, pack_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from slop_code.execution.cache import Cache
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.process import ProcessResult
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.execution.sandbox import SetupBox, ToolBuilder

ROOT_USERS = ("", "0", "root", "0:0", "root:root")
DEFAULT_USER = "1000:1000"
MAX_WARNING = 1000
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True)
class EngineState:
    """Image and objects of the engine."""

    info: EngineInfo
    image: Mapping[str, Any]
    objects: set[str]
    """Names of volumes and digests of images: those at the start, those made since, and those that entries name."""


@dataclass(frozen=True, slots=True)
class ImagePython:
    path: str
    version: str


class DockerSandbox:
    name = "docker"

    def __init__(self, spec: EnvironmentSpec, cache: Cache, progress: ProgressCallback = lambda _: None) -> None:
        assert spec.docker is not None
        self.spec, self.cache, self.progress, self.settings = spec, cache, progress, spec.docker
        self.engine = Engine(spec.docker.binary)
        self.mounts = extra_mounts(spec.docker.extra_mounts)

    def unavailable_reason(self) -> str | None:
        """An engine that does not answer raises its error; otherwise the support volume is made."""
        reason = self.engine.unavailable_reason() or missing_runtime_reason(self.engine, self.settings.runtime)
        if reason is None:
            _ = self.support_volume
        return reason

    @functools.cached_property
    def engine_state(self) -> EngineState:
        """Abandoned objects are removed now."""
        engine = self.engine
        info, image, containers, volumes, images = run_concurrently(
            lambda: read_info(engine),
            lambda: engine.image(self.settings.image, self.progress, self.spec.timeouts.image),
            engine.containers,
            engine.volumes,
            engine.images,
        )
        removed = remove_abandoned_objects(engine, containers, volumes)
        return EngineState(info, image, {volume.name for volume in volumes} - set(removed) | images)

    @property
    def owner(self) -> str:
        return owner_label(self.cache)

    @property
    def disk(self) -> str:
        return "the data folder of the container engine"

    def image(self) -> str:
        return str(self.engine_state.image["Id"])

    def machine(self) -> str:
        name = str(self.engine_state.image.get("Architecture", ""))
        return MACHINES.get(name, name)

    def identity(self) -> Sequence[object]:
        own = [self.settings.workdir, self.settings.user, c.SUBJECT_ENV]
        return [self.name, *self.engine.daemon_identity(), self.image(), *own]

    def layout(self, session: Path) -> BoxLayout:
        tools, gate = f"{c.SUPPORT}/bin", f"{c.GATE}/socket"
        cpus = self.spec.limits.cpus if "cpus" in self.engine_state.info.enforced else None
        return BoxLayout(self.settings.workdir, "/tmp", c.HOME, tools, LAUNCHER, c.JUDGE, gate, cpus)

    def variables(self) -> Mapping[str, str]:
        pairs = (pair.partition("=") for pair in self.engine_state.image["Config"].get("Env") or ())
        return {name: value for name, _, value in pairs}

    def subject_env(self, entry: Path) -> str:
        return c.SUBJECT_ENV

    def subject_python(self) -> str:
        """The image's Python for the request, else the program of the command; for `python`, any Python 3."""
        if (request := self.spec.python_request()) is not None:
            return self._image_python(request).path
        word = self.spec.interpreter()
        return word if word and os.path.basename(word) != "python" else "3"

    def subject_version(self) -> str | None:
        if self.spec.interpreter() is None:
            return None
        try:
            return self._image_python(self.spec.python_request() or self.subject_python()).version
        except ConfigError:
            return None

    def subject_identity(self) -> Sequence[object]:
        """The image decides which interpreters there are, and the steps of set-up name the one that is used."""
        return [*self.identity(), self.settings.runtime]

    def _image_python(self, request: str) -> ImagePython:
        """The interpreter of the image that fits; it is asked once."""

        def build(scratch: Path) -> None:
            answers = [self._ask_uv(*FIND, *words, request) for words in ((), ("--show-version",))]
            (scratch / "python").write_text("\n".join(answers))

        def load(entry: Path) -> ImagePython:
            path, version = (entry / "python").read_text().split("\n")
            return ImagePython(path, version)

        try:
            return self.cache.load_or_build("pythons", digest_of([*self.identity(), request]), build, load)
        except InfrastructureError as error:
            if "o interpreter found" not in str(error):
                raise
            raise ConfigError(
                f"no Python of the image {self.settings.image} fits {request}; use an image that has one, "
                f"or change {REQUESTS}"
            ) from error

    def _ask_uv(self, *words: str) -> str:
        plain = ["--rm", *c.COMMON, *c.labels(self.owner), "--network", "none", *c.capabilities()]
        variables = ["--env", "UV_PYTHON_DOWNLOADS=never", "--env", f"HOME={c.HOME}"]
        mounts = [*self.support_volume.words, "--entrypoint", f"{c.SUPPORT}/bin/uv"]
        return self.engine.check_output("run", *plain, *variables, *mounts, self.image(), *words).strip()

    def tool_builder(self, scratch: Path) -> AbstractContextManager[ToolBuilder]:
        """An image that cannot be used is rejected before anything is made for it."""
        self._declared(c.ContainerNames(), "")
        return open_tool_builder(self, scratch)

    def setup_box(self, job: SetupJob) -> AbstractContextManager[SetupBox]:
        return open_setup_box(self, job)

    def record_objects(self, scratch: Path, names: Mapping[str, str]) -> None:
        (scratch / OBJECTS_FILE).write_text(json.dumps(names))
        self.engine_state.objects.update(names.values())

    def check_tools(self, entry: Path) -> None:
        self.objects_of(entry)

    check_subject = check_tools

    def objects_of(self, entry: Path) -> dict[str, str]:
        """The engine's objects that a cache entry names; a ValueError when any of them is gone."""
        names: dict[str, str] = json.loads((entry / OBJECTS_FILE).read_text())
        known, named = self.engine_state.objects, {*names.values()}
        if not named <= known:  # another evaluation may have made them meanwhile
            known |= named & {*self.engine.images(), *(volume.name for volume in self.engine.volumes())}
        if not named <= known:
            raise ValueError("it is gone from the engine")
        return names

    @functools.cached_property
    def support_volume(self) -> Mount:
        """The helper and uv, for the image's processor, in a volume that every container mounts read-only."""

        def build(scratch: Path) -> None:
            self.progress(ProgressEvent(ProgressKind.FETCH_UV, self.machine()))
            build_support_files(self.machine(), scratch / "support", self.cache)
            with new_volume(self, scratch, "support") as volume:
                filler, mount = f"{volume}-filler", Mount(volume, c.SUPPORT, readonly=False)
                try:
                    words = ["--name", filler, *c.labels(self.owner), *mount.words]
                    self.engine.check_output("create", *c.COMMON, *words, self.image(), c.BOX)
                    self.engine.check_output("cp", f"{scratch}/support/.", f"{filler}:{c.SUPPORT}")
                finally:
                    self.engine.remove([filler])
                self.record_objects(scratch, {"support": volume})

        key = digest_of([self.engine.daemon_identity(), *support_identity(self.machine())])
        names = self.cache.load_or_build("support", key, build, self.objects_of)
        return Mount(names["support"], c.SUPPORT)

    @functools.cached_property
    def runtime(self) -> RuntimeProbe:
        name = self.settings.runtime
        return RuntimeProbe(shares_kernel=True, keeps_changes=True) if name is None else probe_runtime(self, name)

    def user(self, given: str) -> c.User:
        """Only the image knows the numbers of its names; it is asked once."""
        if numbers := re.fullmatch(r"(\d+):(\d+)", given):
            return c.User(int(numbers[1]), int(numbers[2]))

        def build(scratch: Path) -> None:
            (scratch / "id").write_text(self._ask_helper(given, [], "id"))

        def load(entry: Path) -> c.User:
            uid, gid = (entry / "id").read_text().split()
            return c.User(int(uid), int(gid))

        return self.cache.load_or_build("users", digest_of([*self.identity(), given]), build, load)

    def measure(self, volume: str) -> str:
        """Entries and bytes, counted in a new container, since set-up could have changed every program of its own."""
        return self._ask_helper("0:0", ["--cap-add", "DAC_OVERRIDE", *Mount(volume, c.SOURCE).words], "count", c.SOURCE)

    def check_mount_targets(self, image: str) -> None:
        """Raises for a link at one of them, which could redirect a mount, over our own folder for example."""
        mounts = [*self.mounts, *self._declared(c.ContainerNames(), "")]
        targets = [self.settings.workdir, *[mount.target for mount in mounts]]
        self._ask_helper("0:0", [], "check-paths", *targets, image=image)

    def _ask_helper(self, user: str, options: Sequence[str], *words: str, image: str | None = None) -> str:
        plain = ["--rm", *c.COMMON, *c.labels(self.owner), "--network", "none", "--user", user, *c.capabilities()]
        if image is not None:  # made by set-up, so it is as untrusted as the submission
            plain += c.runtime_arguments(self.settings.runtime)
        return self.engine.check_output(
            "run", *plain, *options, *self.support_volume.words, "--entrypoint", c.BOX, image or self.image(), *words
        )

    def box_user(self) -> c.User:
        """The user of judge and subject: the environment's, else the image's unless it is root, else DEFAULT_USER."""
        return self.user(str(self.settings.user or self._own_user() or DEFAULT_USER))

    def setup_user(self) -> c.User:
        return self.user(str(self.settings.user or self._own_user() or "0:0"))

    def _own_user(self) -> str:
        own = str(self.engine_state.image["Config"].get("User") or "")
        return "" if own in ROOT_USERS else own

    def source(self, submission: Path) -> tuple[Mount | None, TreeSummary]:
        """The mount of the submission; None when it is sent instead, as for files that only root can read."""
        measured = summarize(submission, MAX_WORKSPACE)
        mounted = self.settings.mount_workspace and not measured.unreadable
        return Mount(str(submission), c.SOURCE) if mounted else None, measured

    def judge(self, job: JudgeJob) -> JudgeResult:
        names, log, warning = c.ContainerNames(), job.log, ""
        image, source, measured = self._workspace(job)
        arguments = self._judge_arguments(names, job, source)
        try:
            self._make_volumes(names, measured)
            with open_piped([self.engine.binary, *arguments], log) as child, contextlib.ExitStack() as after:
                try:
                    join_sender = start_thread(child.send, self._pack(job, None if source else job.submission))
                    wait_until_ready(self.engine, child, log, measured if source and source.is_folder else None)
                    join_sender()
                    if job.submission is not None:
                        warning = self._start_subject(names, image, job.request.environment["PATH"])
                    if job.request.interactive:
                        after.enter_context(forward_stdin(child))
                    done = finish(self.engine, child, log, returned_folders(job), job.request.timeout)
                    reached = done.exit_code == SUBJECT_BOX_ENDED and self._reached_memory_limit(names.of("subject"))
                finally:
                    self.engine.remove([names.of("judge"), names.of("subject")])
        finally:
            self.engine.remove(volumes=[*names.shared, *self._declared_names(names)])
        return replace(self._judge_result(done, warning), reached_memory_limit=reached)

    def _reached_memory_limit(self, container: str) -> bool:
        """Known to the engine once it has noticed the end of the container."""
        self.engine.run("wait", container)
        return self.engine.run("inspect", "--format", "{{.State.OOMKilled}}", container).output.strip() == "true"

    def _workspace(self, job: JudgeJob) -> tuple[str, Mount | None, TreeSummary]:
        """The subject's image, the mount of its workspace unless it is sent, and the workspace's size."""
        if job.submission is None:
            return self.image(), None, TreeSummary()
        if job.subject.entry is None:
            return self.image(), *self.source(job.submission)
        objects = self.objects_of(job.subject.entry)
        if not job.subject.has_workspace:
            return objects["image"], *self.source(job.submission)
        entries, size = map(int, (job.subject.entry / "measured").read_text().split())
        return objects["image"], Mount(objects["layer"], c.SOURCE), TreeSummary(entries, size)

    def _container(
        self, names: c.ContainerNames, box: str, mounts: Sequence[Mount] = (), **settings: Any
    ) -> c.ContainerSpec:
        return c.ContainerSpec(
            owner=self.owner,
            user=self.box_user(),
            workspace=self.settings.workdir,
            mounts=[self.support_volume, *mounts, *self.mounts, *self._declared(names, box)],
            enforced=self.engine_state.info.enforced,
            is_relayed=not self.runtime.shares_kernel,
            **settings,
        )

    def _judge_arguments(self, names: c.ContainerNames, job: JudgeJob, source: Mount | None) -> list[str]:
        tools = Mount(self.objects_of(job.request.tools)["tools"], c.TOOLS)
        network = (self.settings.network or "bridge") if self.spec.network == "full" else "none"
        container = self._container(names, "judge", [tools], image=self.image(), network=network)
        return c.judge_arguments(names, container, job, source)

    def _make_volumes(self, names: c.ContainerNames, measured: TreeSummary) -> None:
        disk = self.spec.limits.disk
        workspace, tmp, shown, gate = names.shared
        options = {
            workspace: c.volume_options(disk + measured.space, measured.entries),
            tmp: c.volume_options(disk, mode="1777"),
            shown: c.volume_options(HANDED_SIZE),
            gate: c.volume_options(c.PAGE),
        }
        makes = [c.volume_arguments(name, self.owner, option) for name, option in options.items()]
        makes += [["volume", "create", *c.labels(self.owner), name] for name in self._declared_names(names)]
        run_concurrently(*[functools.partial(self.engine.check_output, *make) for make in makes])

    def _pack(self, job: JudgeJob, submission: Path | None) -> Iterator[bytes]:
        """The tar archive that is sent to the judge's container: tests, plugin, settings, and a submission not mounted.

        Without a subject the judge may write to tests and plugin.
        """
        owner = self.box_user().owner
        if submission is not None:
            yield from pack_tree(submission, "workspace", owner=owner, without=RESERVED)
        for name, path in {"tests": job.request.tests, **job.request.files}.items():
            yield from pack_tree(path, f"judge/{name}", owner=owner if job.collecting else None)
        yield from pack_tree(job.request.shown, "shown", owner=owner)
        settings = launcher_settings(self.layout(job.scratch), job.request, self.spec.limits)
        yield from pack_file(settings, "call/conf")
        yield pack_end()

    def _declared(self, names: c.ContainerNames, box: str) -> list[Mount]:
        """Volumes that the image declares; each box has its own, filled from its own image."""
        taken = [self.settings.workdir, *[mount.target for mount in self.mounts]]
        return names.declared(self.engine_state.image["Config"].get("Volumes") or (), taken, box)

    def _declared_names(self, names: c.ContainerNames) -> list[str]:
        return [mount.source for box in ("judge", "subject") for mount in self._declared(names, box)]

    def _start_subject(self, names: c.ContainerNames, image: str, path: str) -> str:
        """The engine's warning: an engine that cannot enforce a limit warns, and starts the container all the same."""
        container = self._container(names, "subject", image=image, runtime=self.settings.runtime)
        answer = self.engine.run(*c.subject_arguments(names, container, self.spec.limits, path))
        if answer.exit_code != 0:
            raise self.engine.failure("run", answer.errors)
        return answer.errors.strip()[-MAX_WARNING:]

    def _judge_result(self, done: ProcessResult, warning: str) -> JudgeResult:
        isolation = {
            "sandbox": self.name,
            "judge_and_subject_apart": True,
            "network": self.spec.network,
            **limits_in_force(self.engine_state.info, self.spec.limits, warning),
        }
        if (name := self.settings.runtime) is not None:
            isolation |= {"runtime": name, "shared_kernel": self.runtime.shares_kernel}
        return JudgeResult(done, isolation)
