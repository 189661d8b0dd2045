"""The container runtime that `docker.runtime` names, for containers that run code of the submission."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code._io import digest_of
from slop_code.execution.docker import container_arguments as c
from slop_code.execution.docker.engine_info import read_info

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slop_code.execution.docker.docker_sandbox import DockerSandbox
    from slop_code.execution.docker.engine import Engine

NO_BOOT_ID = "boot"


@dataclass(frozen=True, slots=True)
class RuntimeProbe:
    shares_kernel: bool
    """Judge and subject have the same kernel; otherwise calls are relayed."""

    keeps_changes: bool
    """The engine sees what a container writes to its root, so that set-up can become an image."""


def missing_runtime_reason(engine: Engine, runtime: str | None) -> str | None:
    """None if the engine has the runtime; it is asked, as some engines fall back to another one."""
    if runtime is None or runtime in (known := read_info(engine).runtimes):
        return None
    if not known:
        return f"docker.runtime: {runtime}: {engine.binary} does not say which runtimes it has; use Docker for it"
    return (
        f"docker.runtime: {engine.binary} has no runtime {runtime}, only {', '.join(sorted(known))}; "
        "add it to the daemon's configuration, or name another"
    )


def probe_runtime(docker: DockerSandbox, runtime: str) -> RuntimeProbe:
    """Tried in containers, once for each of its settings, since its name says nothing."""

    def build(scratch: Path) -> None:
        judge, subject = (_run(docker, name, "kernel") for name in (None, runtime))
        shares_kernel = judge == subject != NO_BOOT_ID
        (scratch / "probe").write_text(json.dumps([shares_kernel, _keeps_changes(docker, runtime)]))

    def load(entry: Path) -> RuntimeProbe:
        return RuntimeProbe(*json.loads((entry / "probe").read_text()))

    settings = docker.engine_state.info.runtimes.get(runtime)
    key = digest_of([*docker.engine.daemon_identity(), docker.support_volume.source, runtime, settings])
    return docker.cache.load_or_build("runtimes", key, build, load)


def _keeps_changes(docker: DockerSandbox, runtime: str) -> bool:
    name = c.ContainerNames().of("probe")
    try:
        _run(docker, runtime, "init", "--mkdir", c.SUBJECT_ENV, "755", "--ready", "--hold", options=["--name", name])
        changes = docker.engine.check_output("diff", name).splitlines()
    finally:
        docker.engine.remove([name])
    return any(change.split()[-1] == c.SUBJECT_ENV for change in changes)


def _run(docker: DockerSandbox, runtime: str | None, *words: str, options: Sequence[str] = ("--rm",)) -> str:
    plain = [*options, *c.COMMON, *c.labels(docker.owner), *c.runtime_arguments(runtime), "--network", "none"]
    box = ["--user", "0:0", *c.capabilities(), *docker.support_volume.words, "--entrypoint", c.BOX, docker.image()]
    return docker.engine.check_output("run", *plain, *box, *words)
