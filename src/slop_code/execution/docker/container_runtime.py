"""The container runtime that `docker.runtime` names, for containers that run code of the submission."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slop_code.execution.docker.engine import Engine


def runtime_arguments(runtime: str | None) -> list[str]:
    """Nothing for the engine's default."""
    return ["--runtime", runtime] if runtime else []


def known_runtimes(engine: Engine) -> list[str]:
    """Empty for engines that list none, such as podman."""
    try:
        answer = json.loads(engine.check_output("info", "--format", "{{json .}}"))
        return sorted(answer.get("Runtimes") or ())
    except (ValueError, AttributeError):
        return []


def missing_runtime_reason(engine: Engine, runtime: str | None) -> str | None:
    """None if the engine has the runtime; it is asked, as some engines fall back to another one."""
    if runtime is None or runtime in (known := known_runtimes(engine)):
        return None
    if not known:
        return f"docker.runtime: {runtime}: {engine.binary} does not say which runtimes it has; use Docker for it"
    return (
        f"docker.runtime: {engine.binary} has no runtime {runtime}, only {', '.join(known)}; "
        "add it to the daemon's configuration, or name another"
    )
