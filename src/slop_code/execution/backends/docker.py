"""Two containers of one image: the judge's, which has no network, and the subject's, joined to its loopback.

The judge's process 1 is `slopbox pair`: it takes what it needs from its standard input, waits for the subject's
container, runs pytest without any privilege and sends the reports to its standard output. When the evaluator is
gone, that input ends and both containers with it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from slop_code._io import digest_of, tail
from slop_code.errors import ConfigError, InfrastructureError
from slop_code.execution import archive
from slop_code.execution.backends import containers as c
from slop_code.execution.backends.engine import Engine, owner, sweep
from slop_code.execution.backends.kit import build_kit, kit_identity
from slop_code.execution.boxes import PATH, Judged, JudgeJob, Layout, SetupJob, launcher_settings
from slop_code.execution.interpreter import network_variables
from slop_code.execution.process import TAIL, Child, Completed, run, talk
from slop_code.execution.threads import beside, together
from slop_code.execution.tools import WARM_S, tools_failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from slop_code.execution.cache import Cache
    from slop_code.execution.spec import EnvironmentSpec

START_S = 300.0
ANSWER_S = 120.0
JUDGE_PYTHON = ">=3.11"
ROOT = ("", "0", "root", "0:0", "root:root")
DEFAULT_USER = "1000:1000"
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True)
class Found:
    """What the engine has when an evaluation starts."""

    image: Mapping[str, Any]
    kept: set[str] = field(default_factory=set)


class Docker:
    name = "docker"

    def __init__(self, spec: EnvironmentSpec, cache: Cache) -> None:
        assert spec.docker is not None
        self.spec, self.cache, self.docker = spec, cache, spec.docker
        self.engine = Engine(spec.docker.binary)
        self.mounts = c.extra_mounts(spec.docker.extra_mounts)
        if not c.is_free(self.docker.workdir):
            raise ConfigError(
                f"docker.workdir: {self.docker.workdir!r} cannot be the workspace; expected e.g. /workspace"
            )

    def missing(self) -> str | None:
        """An engine that is there and does not answer raises what it said."""
        missing = self.engine.missing()
        if missing is None:
            self.kit()
        return missing

    @functools.cached_property
    def found(self) -> Found:
        """Asked once for an evaluation; what killed evaluators left goes now."""
        engine = self.engine
        image, containers, volumes, images = together(
            lambda: engine.image(self.docker.image), engine.containers, engine.volumes, engine.images
        )
        gone = sweep(engine, containers, volumes)
        return Found(image, {volume.name for volume in volumes} - set(gone) | images)

    def image(self) -> str:
        return str(self.found.image["Id"])

    def identity(self) -> Sequence[object]:
        return [self.name, *self.engine.place(), self.image(), self.docker.workdir, self.docker.user]

    def layout(self, session: Path) -> Layout:
        return Layout(self.docker.workdir, "/tmp", c.HOME, f"{c.KIT}/bin", (f"{c.KIT}/run",), c.JUDGE)

    def variables(self) -> Mapping[str, str]:
        pairs = (pair.partition("=") for pair in self.found.image["Config"].get("Env") or ())
        return {name: value for name, _, value in pairs}

    def subject_env(self, kept: Path) -> str:
        return c.SUBJECT_ENV

    def subject_python(self) -> str:
        """The image's own: what the word that will be run means, and Python 3 is often not called python."""
        word = self.spec.entry("x")[0]
        return word if word.startswith("python3") else "3"

    def check_tools(self, kept: Path) -> None:
        self.check(kept)

    def check_subject(self, kept: Path) -> None:
        self.check(kept)

    def check(self, kept: Path) -> None:
        if not set((kept / "kept").read_text().split()) <= self.found.kept:
            raise ValueError("the engine has it no more")

    def keep(self, scratch: Path, names: Mapping[str, str]) -> None:
        (scratch / "names.json").write_text(json.dumps(names))
        (scratch / "kept").write_text("\n".join(names.values()))
        self.found.kept.update(names.values())

    @functools.cache  # noqa: B019  (one sandbox lives as long as one evaluation)
    def kit(self) -> c.Mount:
        """The helper and uv, for the image's processor, in a volume that every container mounts read-only."""
        machine = MACHINES.get(self.found.image.get("Architecture", ""), self.found.image.get("Architecture", ""))
        key = digest_of([self.engine.place(), *kit_identity(machine)])

        def build(scratch: Path) -> None:
            build_kit(machine, scratch / "kit", self.cache)
            with self.kept_volume(scratch, "kits", key, "kit") as volume:
                name = f"{volume}-fill"
                mounts = c.Mount(volume, c.KIT, readonly=False).words
                try:
                    self.engine.ask("create", "--name", name, *c.labels(self.owner), *mounts, self.image(), c.BOX)
                    self.engine.ask("cp", f"{scratch}/kit/.", f"{name}:{c.KIT}")
                finally:
                    self.engine.remove([name])

        entry = self.cache.load_once("kits", key, build, self._checked)
        return c.Mount(self.names(entry)["kit"], c.KIT)

    def _checked(self, kept: Path) -> Path:
        self.check(kept)
        return kept

    @staticmethod
    def names(kept: Path) -> dict[str, str]:
        found: dict[str, str] = json.loads((kept / "names.json").read_text())
        return found

    @property
    def owner(self) -> str:
        return owner(self.cache)

    @contextlib.contextmanager
    def kept_volume(self, scratch: Path, kind: str, key: str, what: str, **more: str) -> Iterator[str]:
        """A volume that stays when the block ends well."""
        volume = c.Names().of(what)
        entry = quote(str(self.cache.root / kind / key), safe="/")
        self.engine.ask("volume", "create", *c.labels(self.owner, entry), volume)
        try:
            yield volume
            self.keep(scratch, {what: volume, **more})
        except BaseException:
            self.engine.remove(volumes=[volume])
            raise

    def user(self, given: str) -> c.User:
        """Names are the image's business: it is asked once."""
        if numbers := re.fullmatch(r"(\d+):(\d+)", given):
            return c.User(int(numbers[1]), int(numbers[2]))
        kit = self.kit()

        def build(scratch: Path) -> None:
            arguments = ["run", "--rm", *c.labels(self.owner), "--network", "none", "--user", given, *kit.words]
            (scratch / "id").write_text(self.engine.ask(*arguments, "--entrypoint", c.BOX, self.image(), "id"))

        entry = self.cache.once("users", digest_of([*self.identity(), given]), build)
        uid, gid = (entry / "id").read_text().split()
        return c.User(int(uid), int(gid))

    def box_user(self) -> c.User:
        """Who judge and subject are: as asked for, else the image's user, never root unless asked for."""
        own = str(self.found.image["Config"].get("User") or "")
        return self.user(str(self.docker.user or (own if own not in ROOT else DEFAULT_USER)))

    def setup_user(self) -> c.User:
        own = str(self.found.image["Config"].get("User") or "")
        return self.user(str(self.docker.user or (own if own not in ROOT else "0:0")))

    @contextlib.contextmanager
    def worker(
        self, log: Path, mounts: Sequence[c.Mount], steps: Sequence[str], parts: Iterable[bytes]
    ) -> Iterator[str]:
        """A container that waits for commands until the block ends; its name."""
        name = c.Names().of("worker")
        arguments = c.worker_arguments(
            name,
            owner=self.owner,
            image=self.image(),
            network=self.docker.network,
            workspace=self.docker.workdir,
            mounts=[self.kit(), *self.mounts, *mounts],
            steps=["--unpack", *self.setup_user().words, *steps],
        )
        with talk([self.engine.binary, *arguments], log) as child:
            try:
                sent = beside(child.send, itertools.chain(_certificates(), parts, [archive.pack_end()]))
                self._ready(child, log)
                sent()
                yield name
            finally:
                self.engine.remove([name])

    def _ready(self, child: Child, log: Path) -> tuple[int, int]:
        """Entries and bytes that process 1 unpacked, once it is ready."""
        line, until = b"", time.monotonic() + START_S
        with contextlib.suppress(TimeoutError):
            while not line.endswith(b"\n") and (byte := child.read(1, until)):
                line += byte
        if match := re.fullmatch(rb"ready (\d+) (\d+)\n", line):
            return int(match[1]), int(match[2])
        raise self.engine.failure("run", _last_words(child, log) or f"no sign of life within {START_S:g} s")

    @contextlib.contextmanager
    def toolshop(self, scratch: Path) -> Iterator[DockerTools]:
        user = self.box_user()
        key = scratch.name.removeprefix(".").partition(".")[0]
        with self.kept_volume(scratch, "tools", key, "tools") as volume:
            steps = ["--own", c.UV_CACHE, *user.words]
            with self.worker(scratch / "log", [c.Mount(volume, c.UV_CACHE, readonly=False)], steps, ()) as name:
                yield DockerTools(self, name, user, scratch)
        (scratch / "log").unlink(missing_ok=True)

    @contextlib.contextmanager
    def workshop(self, job: SetupJob) -> Iterator[DockerShop]:
        """What the commands leave becomes an image, and a volume where the workspace is kept."""
        user, workspace = self.setup_user(), self.docker.workdir
        kind, key = job.scratch.parent.name, job.scratch.name.removeprefix(".").partition(".")[0]
        entry = quote(str(self.cache.root / kind / key), safe="/")
        source = self._source(job.submission)
        steps = ["--copy", c.SOURCE, workspace, *user.words] if source else []
        steps += ["--mkdir", c.SUBJECT_ENV, "755", "--own", c.SUBJECT_ENV, *user.words]
        parts = () if source else archive.pack_tree(job.submission, workspace, users=True)
        volume = c.Names().of("layer")
        self.engine.ask("volume", "create", *c.labels(self.owner, entry), volume)
        kept = False
        try:
            mounts = [c.Mount(volume, workspace, readonly=False), *([source] if source else [])]
            with self.worker(job.scratch / "log", mounts, steps, parts) as name:
                yield DockerShop(self, name, user, job)
                label = f"LABEL slop-code.entry={entry}"
                names = {"image": self.engine.ask("commit", "--change", label, name, timeout=START_S)}
                if job.keep_workspace:
                    measured = self.engine.ask("exec", name, c.BOX, "measure", workspace)
                    (job.scratch / "measured").write_text(measured)
                    names["layer"] = volume
            self.keep(job.scratch, names)
            kept = job.keep_workspace
        finally:
            if not kept:
                self.engine.remove(volumes=[volume])
        for left in ("log", "output"):
            (job.scratch / left).unlink(missing_ok=True)

    def _source(self, submission: Path) -> c.Mount | None:
        return c.Mount(str(submission), c.SOURCE) if self.docker.mount_workspace else None

    def judge(self, job: JudgeJob) -> Judged:
        names, log = c.Names(), job.reports / "pytest.log"
        user, image, source, measured = self.box_user(), self.image(), None, archive.Measure()
        if job.subject.kept is not None:
            kept = self.names(job.subject.kept)
            image = kept["image"]
        if job.subject.kept is not None and job.subject.workspace:
            entries, size = map(int, (job.subject.kept / "measured").read_text().split())
            measured = archive.Measure(entries, size, size + 2 * entries * archive.PAGE)
            source = c.Mount(kept["layer"], c.SOURCE)
        elif job.submission is not None:
            source, measured = self._source(job.submission), archive.measure(job.submission)
        judge = c.judge_arguments(
            names,
            owner=self.owner,
            image=self.image(),
            user=user,
            workspace=self.docker.workdir,
            network=self._network(),
            mounts=[self.kit(), c.Mount(self.names(job.tools)["tools"], c.TOOLS), *self.mounts],
            source=source,
            subject=not job.collecting,
            environment={**job.environment, "TMPDIR": "/slop/tmp"},
            argv=job.argv,
        )
        try:
            self._make_volumes(names, measured)
            with talk([self.engine.binary, *judge], log) as child:
                try:
                    sent = beside(child.send, self._parts(job, None if source else job.submission))
                    unpacked = self._ready(child, log)
                    sent()
                    if job.submission is not None:
                        self._check_source(source, measured, unpacked)
                        self._start_subject(names, image, user)
                    done = self._finish(child, job, log)
                finally:
                    self.engine.remove([names.of("judge"), names.of("subject")])
        finally:
            self.engine.remove(volumes=names.shared)
        return Judged(done, self._isolation())

    def _make_volumes(self, names: c.Names, measured: archive.Measure) -> None:
        disk = self.spec.limits.disk
        workspace, tmp, shown, gate = names.shared
        options = {
            workspace: c.volume_options(disk, measured.space, measured.entries, "755"),
            tmp: c.volume_options(disk, 0, 0, "1777"),
            shown: "mode=755,size=1g,nosuid,nodev",
            gate: "mode=755,size=64k,nosuid,nodev",
        }
        makes = [c.volume_arguments(name, self.owner, option) for name, option in options.items()]
        together(*[functools.partial(self.engine.ask, *make) for make in makes])

    def _parts(self, job: JudgeJob, submission: Path | None) -> Iterator[bytes]:
        """Everything the judge's container is sent; without a subject it may add to tests and plugin."""
        if submission is not None:
            yield from archive.pack_tree(submission, self.docker.workdir, users=True)
        yield from archive.pack_tree(job.tests, f"{c.JUDGE}/tests", users=job.collecting)
        yield from archive.pack_tree(job.shown, c.SHOWN, users=True)
        for place, path in c.file_places(job.files).items():
            yield from archive.pack_tree(path, place, users=job.collecting)
        settings = launcher_settings(self.layout(job.scratch), self.spec.limits.output)
        yield from archive.pack_text(settings, f"{c.CALL}/conf")
        yield archive.pack_end()

    def _check_source(self, source: c.Mount | None, measured: archive.Measure, unpacked: tuple[int, int]) -> None:
        """A folder of the same name on the daemon's machine need not be the same folder."""
        if source is None or "/" not in source.source:
            return
        if unpacked[0] < measured.entries or unpacked[1] < measured.size:
            told = f"the daemon sees another {source.source} than this machine"
            raise InfrastructureError(f"{told}; set docker.mount_workspace: false")

    def _start_subject(self, names: c.Names, image: str, user: c.User) -> None:
        arguments = c.subject_arguments(
            names,
            owner=self.owner,
            image=image,
            user=user,
            workspace=self.docker.workdir,
            mounts=[self.kit(), *self.mounts],
            limits=self.spec.limits,
        )
        self.engine.ask(*arguments)

    def _finish(self, child: Child, job: JudgeJob, log: Path) -> Completed:
        """The status that process 1 sent; one that the engine's command has is nobody's word."""
        in_time = child.answers(time.monotonic() + job.timeout)
        if not in_time:
            child.hang_up()
        until = time.monotonic() + ANSWER_S
        places = {f"{c.JUDGE}/reports": job.reports}
        if job.collecting:
            places |= {f"{c.JUDGE}/tests": job.tests, f"{c.JUDGE}/plugin": job.files["plugin"]}
        try:
            status = archive.unpack(lambda size: child.read(size, until), places)
        except (EOFError, TimeoutError):
            raise self.engine.failure("run", _last_words(child, log) or "the judge's container is gone") from None
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return Completed(code if in_time else None, tail(log, TAIL))

    def _network(self) -> str:
        return (self.docker.network or "bridge") if self.spec.network == "full" else "none"

    def _isolation(self) -> dict[str, Any]:
        limits = self.spec.limits
        return {
            "sandbox": self.name,
            "judge_and_subject_apart": True,
            "network": self.spec.network,
            "control_groups": True,
            "limits": limits.model_dump(mode="json"),
        }


@dataclass(frozen=True, slots=True)
class DockerShop:
    sandbox: Docker
    container: str
    user: c.User
    job: SetupJob

    def run(self, command: Sequence[str], timeout: float) -> Completed:
        environment = {**self.job.environment, "HOME": c.SETUP_HOME, **_certificate_variables()}
        arguments = c.exec_arguments(self.container, self.user, self.sandbox.docker.workdir, environment, command)
        argv = [self.sandbox.engine.binary, *arguments]
        return run(argv, env=os.environ, log=self.job.scratch / "output", timeout=timeout)


@dataclass(slots=True)
class DockerTools:
    """uv in a container of the image."""

    sandbox: Docker
    container: str
    user: c.User
    scratch: Path
    folder: str = "/tmp"

    def put(self, name: str, text: str) -> str:
        file = self.scratch / "put"
        file.write_text(text)
        file.chmod(0o644)
        self.sandbox.engine.ask("cp", str(file), f"{self.container}:/slop/{name}")
        file.unlink()
        return f"/slop/{name}"

    def python(self) -> str:
        """The image's own where it is recent enough, else one that uv fetches and keeps beside the packages."""
        self.uv("uv", ["venv", "--quiet", "--python", JUDGE_PYTHON, "/tmp/probe"])
        return self.uv("uv", ["run", "--no-project", "--python", "/tmp/probe/bin/python", "python", "-c", BASE]).strip()

    def uv(self, tool: str, arguments: Sequence[str]) -> str:
        environment = {
            "PATH": f"{c.KIT}/bin:{self.sandbox.variables().get('PATH') or PATH}", "HOME": c.SETUP_HOME,
            "UV_CACHE_DIR": c.UV_CACHE, "UV_PYTHON_INSTALL_DIR": f"{c.UV_CACHE}/python", "UV_NO_CONFIG": "1",
            "UV_COMPILE_BYTECODE": "1", "UV_LINK_MODE": "copy", **network_variables(), **_certificate_variables(),
        }  # fmt: skip
        argv = [f"{c.KIT}/bin/{tool}", *arguments]
        exec_ = c.exec_arguments(self.container, self.user, "/tmp", environment, argv)
        answer = self.sandbox.engine.try_(*exec_, timeout=WARM_S)
        if answer.exit_code != 0:
            raise tools_failure(argv, answer.exit_code, answer.errors)
        return answer.output


BASE = "import os, sys; print(os.path.realpath(sys._base_executable))"


def _certificate_variables() -> dict[str, str]:
    given = network_variables()
    if "SSL_CERT_FILE" in given and os.path.isfile(given["SSL_CERT_FILE"]):
        return {"SSL_CERT_FILE": f"{c.NET}/ca.pem", "SSL_CERT_DIR": ""}
    return {}


def _certificates() -> Iterator[bytes]:
    """The host's own bundle where the way to packages needs it."""
    if _certificate_variables():
        yield from archive.pack_tree(Path(network_variables()["SSL_CERT_FILE"]).resolve(), f"{c.NET}/ca.pem")


def _last_words(child: Child, log: Path) -> str:
    """What the engine's command said when it gave up."""
    child.hang_up()
    with contextlib.suppress(TimeoutError):
        while child.read(1 << 16, time.monotonic() + 5):
            pass
    return tail(log, TAIL).strip()
