"""Two containers of one image: the judge's, which has no network, and the subject's, joined to its loopback.

The judge's process 1 is `slopbox pair`: it takes what it needs from its standard input, waits for the subject's
container, runs pytest without any privilege and sends the reports to its standard output. When the evaluator is
gone, that input ends and both containers with it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slop_code._io import digest_of
from slop_code.errors import InfrastructureError
from slop_code.execution.archive import pack_end, pack_file, pack_tree
from slop_code.execution.concurrency import run_concurrently, start_thread
from slop_code.execution.docker import container_arguments as c
from slop_code.execution.docker.engine import KEPT, Engine, owner, sweep
from slop_code.execution.docker.extra_mounts import Mount, extra_mounts
from slop_code.execution.docker.init_client import finish, passing_on, ready
from slop_code.execution.docker.setup_containers import new_volume, open_setup_box, open_tool_builder
from slop_code.execution.docker.support_volume import build_support_files, support_identity
from slop_code.execution.fixed_limits import HANDED
from slop_code.execution.process import open_piped
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.execution.sandbox import BoxLayout, JudgeJob, JudgeResult, SetupJob, launcher_settings
from slop_code.execution.submission import RESERVED
from slop_code.execution.tree_walk import TreeSummary, summarize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from slop_code.execution.cache import Cache
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.process import ProcessResult
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.execution.sandbox import SetupBox, ToolBuilder

ROOT = ("", "0", "root", "0:0", "root:root")
DEFAULT_USER = "1000:1000"
LARGEST_WORKSPACE = 2 << 30
WARNING = 1000
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True)
class EngineState:
    """What the engine has when an evaluation starts."""

    image: Mapping[str, Any]
    objects: set[str]
    """Names of volumes and digests of images that are there; those that are made are added."""


class DockerSandbox:
    name = "docker"

    def __init__(self, spec: EnvironmentSpec, cache: Cache, progress: ProgressCallback = lambda _: None) -> None:
        assert spec.docker is not None
        self.spec, self.cache, self.progress, self.settings = spec, cache, progress, spec.docker
        self.engine = Engine(spec.docker.binary)
        self.mounts = extra_mounts(spec.docker.extra_mounts)

    def unavailable_reason(self) -> str | None:
        """An engine that is there and does not answer raises what it said; one that does is made ready."""
        reason = self.engine.unavailable_reason()
        if reason is None:
            _ = self.support_volume
        return reason

    @functools.cached_property
    def engine_state(self) -> EngineState:
        """Asked once for an evaluation; what killed evaluators left goes now."""
        engine = self.engine
        image, containers, volumes, images = run_concurrently(
            lambda: engine.image(self.settings.image, self.progress), engine.containers, engine.volumes, engine.images
        )
        gone = sweep(engine, containers, volumes)
        return EngineState(image, {volume.name for volume in volumes} - set(gone) | images)

    @property
    def owner(self) -> str:
        return owner(self.cache)

    def image(self) -> str:
        return str(self.engine_state.image["Id"])

    def machine(self) -> str:
        name = str(self.engine_state.image.get("Architecture", ""))
        return MACHINES.get(name, name)

    def identity(self) -> Sequence[object]:
        own = [self.settings.workdir, self.settings.user, c.SUBJECT_ENV]
        return [self.name, *self.engine.daemon_identity(), self.image(), *own]

    def layout(self, session: Path) -> BoxLayout:
        return BoxLayout(self.settings.workdir, "/tmp", c.HOME, f"{c.SUPPORT}/bin", (f"{c.SUPPORT}/run",), c.JUDGE)

    def variables(self) -> Mapping[str, str]:
        pairs = (pair.partition("=") for pair in self.engine_state.image["Config"].get("Env") or ())
        return {name: value for name, _, value in pairs}

    def subject_env(self, kept: Path) -> str:
        return c.SUBJECT_ENV

    def subject_python(self) -> str:
        """The image's own: what the word that will be run means, and Python 3 is often not called python."""
        word = self.spec.interpreter()
        return word if word and os.path.basename(word) != "python" else "3"

    def tool_builder(self, scratch: Path) -> AbstractContextManager[ToolBuilder]:
        """An image that cannot be used is refused before anything is made for it."""
        self._declared(c.Names(), "")
        return open_tool_builder(self, scratch)

    def setup_box(self, job: SetupJob) -> AbstractContextManager[SetupBox]:
        return open_setup_box(self, job)

    def keep(self, scratch: Path, names: Mapping[str, str]) -> None:
        (scratch / KEPT).write_text(json.dumps(names))
        self.engine_state.objects.update(names.values())

    def check_tools(self, kept: Path) -> None:
        kept_names(kept, self.engine_state.objects)

    def check_subject(self, kept: Path) -> None:
        kept_names(kept, self.engine_state.objects)

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
                    self.engine.check_output("create", *c.PLAIN, *words, self.image(), c.BOX)
                    self.engine.check_output("cp", f"{scratch}/support/.", f"{filler}:{c.SUPPORT}")
                finally:
                    self.engine.remove([filler])
                self.keep(scratch, {"support": volume})

        key = digest_of([self.engine.daemon_identity(), *support_identity(self.machine())])
        names = self.cache.load_or_build(
            "support", key, build, lambda kept: kept_names(kept, self.engine_state.objects)
        )
        return Mount(names["support"], c.SUPPORT)

    def user(self, given: str) -> c.User:
        """Names are the image's business: it is asked once."""
        if numbers := re.fullmatch(r"(\d+):(\d+)", given):
            return c.User(int(numbers[1]), int(numbers[2]))

        def build(scratch: Path) -> None:
            (scratch / "id").write_text(self._ask_helper(given, [], "id"))

        def load(entry: Path) -> c.User:
            uid, gid = (entry / "id").read_text().split()
            return c.User(int(uid), int(gid))

        return self.cache.load_or_build("users", digest_of([*self.identity(), given]), build, load)

    def measure(self, volume: str) -> str:
        """Entries and bytes; found out in a container of its own, as in that of set-up anything may answer."""
        return self._ask_helper(
            "0:0", ["--cap-add", "DAC_OVERRIDE", *Mount(volume, c.SOURCE).words], "measure", c.SOURCE
        )

    def check_places(self, image: str) -> None:
        """A link in the way would lead a mount to another place, our own for one."""
        places = [self.settings.workdir, *[mount.target for mount in [*self.mounts, *self._declared(c.Names(), "")]]]
        try:
            self._ask_helper("0:0", [], "plain", *places, image=image)
        except InfrastructureError as error:
            self.engine.remove(images=[image])
            raise InfrastructureError(f"set-up put a link where something is to be mounted\n{error}") from error

    def _ask_helper(self, user: str, options: Sequence[str], *words: str, image: str | None = None) -> str:
        plain = ["--rm", *c.PLAIN, *c.labels(self.owner), "--network", "none", "--user", user, *c.capabilities()]
        return self.engine.check_output(
            "run", *plain, *options, *self.support_volume.words, "--entrypoint", c.BOX, image or self.image(), *words
        )

    def box_user(self) -> c.User:
        """Who judge and subject are: as asked for, else the image's user, never root unless asked for."""
        return self.user(str(self.settings.user or self._own_user() or DEFAULT_USER))

    def setup_user(self) -> c.User:
        return self.user(str(self.settings.user or self._own_user() or "0:0"))

    def _own_user(self) -> str:
        own = str(self.engine_state.image["Config"].get("User") or "")
        return "" if own in ROOT else own

    def source(self, submission: Path) -> tuple[Mount | None, TreeSummary]:
        """Where its workspace is mounted from, None when it is sent, as is what the user cannot read but root can."""
        measured = summarize(submission, LARGEST_WORKSPACE)
        mounted = self.settings.mount_workspace and not measured.unreadable
        return Mount(str(submission), c.SOURCE) if mounted else None, measured

    def judge(self, job: JudgeJob) -> JudgeResult:
        names, log, warning = c.Names(), job.reports / "pytest.log", ""
        image, source, measured = self._workspace(job)
        arguments = self._judge_arguments(names, job, source)
        try:
            self._make_volumes(names, measured)
            with open_piped([self.engine.binary, *arguments], log) as child, contextlib.ExitStack() as after:
                try:
                    sent = start_thread(child.send, self._parts(job, None if source else job.submission))
                    ready(self.engine, child, log, measured if source and source.is_folder else None)
                    sent()
                    if job.submission is not None:
                        warning = self._start_subject(names, image)
                    if job.interactive:
                        after.enter_context(passing_on(child))
                    done = finish(self.engine, child, log, places_of(job), job.timeout)
                finally:
                    self.engine.remove([names.of("judge"), names.of("subject")])
        finally:
            self.engine.remove(volumes=[*names.shared, *self._declared_names(names)])
        return self._judged(done, warning)

    def _workspace(self, job: JudgeJob) -> tuple[str, Mount | None, TreeSummary]:
        """The subject's image, where its workspace comes from unless it is sent, and how large that is."""
        if job.submission is None:
            return self.image(), None, TreeSummary()
        if job.subject.kept is None:
            return self.image(), *self.source(job.submission)
        kept = kept_names(job.subject.kept, self.engine_state.objects)
        if not job.subject.workspace:
            return kept["image"], *self.source(job.submission)
        entries, size = map(int, (job.subject.kept / "measured").read_text().split())
        if size > LARGEST_WORKSPACE:
            raise InfrastructureError(f"set-up left {size} bytes in the workspace, which is in memory; use -e local")
        return kept["image"], Mount(kept["layer"], c.SOURCE), TreeSummary(entries, size)

    def _judge_arguments(self, names: c.Names, job: JudgeJob, source: Mount | None) -> list[str]:
        tools = Mount(kept_names(job.tools, self.engine_state.objects)["tools"], c.TOOLS)
        network = (self.settings.network or "bridge") if self.spec.network == "full" else "none"
        return c.judge_arguments(
            names,
            owner=self.owner,
            image=self.image(),
            user=self.box_user(),
            workspace=self.settings.workdir,
            network=network,
            mounts=[self.support_volume, tools, *self.mounts, *self._declared(names, "judge")],
            source=source,
            collecting=job.collecting,
            interactive=job.interactive,
            environment={**job.environment, "TMPDIR": "/slop/tmp"},
            argv=job.argv,
        )

    def _make_volumes(self, names: c.Names, measured: TreeSummary) -> None:
        disk = self.spec.limits.disk
        workspace, tmp, shown, gate = names.shared
        options = {
            workspace: c.volume_options(disk + measured.space, measured.entries),
            tmp: c.volume_options(disk, mode="1777"),
            shown: c.volume_options(HANDED),
            gate: c.volume_options(c.PAGE),
        }
        makes = [c.volume_arguments(name, self.owner, option) for name, option in options.items()]
        makes += [["volume", "create", *c.labels(self.owner), name] for name in self._declared_names(names)]
        run_concurrently(*[functools.partial(self.engine.check_output, *make) for make in makes])

    def _parts(self, job: JudgeJob, submission: Path | None) -> Iterator[bytes]:
        """Everything the judge's container is sent; without a subject it may add to tests and plugin."""
        owner = self.box_user().owner
        if submission is not None:
            yield from pack_tree(submission, "workspace", owner=owner, without=RESERVED)
        for name, path in {"tests": job.tests, **job.files}.items():
            yield from pack_tree(path, f"judge/{name}", owner=owner if job.collecting else None)
        yield from pack_tree(job.shown, "shown", owner=owner)
        settings = launcher_settings(self.layout(job.scratch), self.spec.limits.output)
        yield from pack_file(settings.encode(), "call/conf")
        yield pack_end()

    def _declared(self, names: c.Names, box: str) -> list[Mount]:
        """Each box has its own, as each is filled from its own image."""
        taken = [self.settings.workdir, *[mount.target for mount in self.mounts]]
        return names.declared(self.engine_state.image["Config"].get("Volumes") or (), taken, box)

    def _declared_names(self, names: c.Names) -> list[str]:
        return [mount.source for box in ("judge", "subject") for mount in self._declared(names, box)]

    def _start_subject(self, names: c.Names, image: str) -> str:
        """What the engine warned of: one that cannot do a limit says so, and goes on."""
        arguments = c.subject_arguments(
            names,
            owner=self.owner,
            image=image,
            user=self.box_user(),
            workspace=self.settings.workdir,
            mounts=[self.support_volume, *self.mounts, *self._declared(names, "subject")],
            limits=self.spec.limits,
        )
        answer = self.engine.run(*arguments)
        if answer.exit_code != 0:
            raise self.engine.failure("run", answer.errors)
        return answer.errors.strip()[-WARNING:]

    def _judged(self, done: ProcessResult, warning: str) -> JudgeResult:
        """Only what is proven is told as in force; without the engine our own watch has all limits but that on CPUs."""
        limits = self.spec.limits.model_dump(mode="json", exclude={"cpus"} if warning else None)
        isolation = {
            "sandbox": self.name,
            "judge_and_subject_apart": True,
            "network": self.spec.network,
            "control_groups": not warning,
            "limits": limits,
        }
        return JudgeResult(done, isolation | ({"warning": warning} if warning else {}))


def kept_names(kept: Path, there: set[str]) -> dict[str, str]:
    """What an entry of the cache stands for; a ValueError when the engine has it no more."""
    names: dict[str, str] = json.loads((kept / KEPT).read_text())
    if not set(names.values()) <= there:
        raise ValueError("the engine has it no more")
    return names


def places_of(job: JudgeJob) -> dict[str, Path]:
    """Where what comes back belongs; what collecting compiles stays beside its sources."""
    places = {"reports": job.reports}
    if job.collecting:
        places |= {"tests": job.tests, "plugin": job.files["plugin"]}
    return places
