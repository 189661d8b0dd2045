"""The container runtime that `docker.runtime` names, for containers that run code of the submission."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slop_code.execution.docker.engine import Engine


def runtime_arguments(runtime: str | None) -> list[str]:
    """Nothing for the engine's default."""
    return ["--runtime", runtime] if runtime else []


def known_runtimes(engine: Engine) -> dict[str, Any]:
    """By their names, with their settings; empty for engines that list none, such as podman."""
    try:
        runtimes = json.loads(engine.check_output("info", "--format", "{{json .}}")).get("Runtimes")
    except (ValueError, AttributeError):
        return {}
    return runtimes if isinstance(runtimes, dict) else {}


def missing_runtime_reason(engine: Engine, runtime: str | None) -> str | None:
    """None if the engine has the runtime; it is asked, as some engines fall back to another one."""
    if runtime is None or runtime in (known := known_runtimes(engine)):
        return None
    if not known:
        return f"docker.runtime: {runtime}: {engine.binary} does not say which runtimes it has; use Docker for it"
    return (
        f"docker.runtime: {engine.binary} has no runtime {runtime}, only {', '.join(sorted(known))}; "
        "add it to the daemon's configuration, or name another"
    )
