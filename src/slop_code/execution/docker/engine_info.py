"""Facts that a container engine states about itself: version, user, storage, and limits that it can enforce."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slop_code.execution.docker.container_arguments import LIMITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slop_code.execution.docker.engine import Engine
    from slop_code.execution.environment import Limits

DOCKER_KEYS = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "cpus"}
PODMAN_CONTROLLERS = {"memory": "memory", "pids": "processes", "cpu": "cpus"}
DELEGATION = (
    "`Delegate=cpu cpuset io memory pids` below `[Service]` in /etc/systemd/system/user@.service.d/delegate.conf, "
    "then `systemctl daemon-reload`, and log in again"
)
SLOW_DRIVER = "vfs"


@dataclass(frozen=True, slots=True)
class EngineInfo:
    name: str = "an unknown engine"
    version: str = ""
    rootless: bool = False
    cgroup_version: str = ""
    storage_driver: str = ""
    enforced: frozenset[str] = frozenset()
    """Those of LIMITS that the kernel enforces for a container."""

    runtimes: Mapping[str, Any] = field(default_factory=dict)
    """By their names, with their settings; empty for engines that list none, such as podman."""

    @property
    def unenforced(self) -> list[str]:
        return [limit for limit in LIMITS if limit not in self.enforced]

    @property
    def description(self) -> str:
        if not self.version:
            return self.name
        groups = f", cgroup v{self.cgroup_version}" if self.cgroup_version else ""
        return f"{self.name} {self.version}, {'rootless' if self.rootless else 'as root'}{groups}"

    @property
    def warning(self) -> str:
        """Empty where the engine enforces every limit."""
        return f"{self.description}: it enforces no limit on {', '.join(self.unenforced)}" if self.unenforced else ""

    @property
    def limits_advice(self) -> str:
        """One for each cause."""
        if not self.unenforced:
            return ""
        if not self.rootless:
            return "its kernel has to have these control groups, see the warnings of its `info`"
        if self.cgroup_version == "1":
            return "use an engine of root, or boot with cgroup v2: `systemd.unified_cgroup_hierarchy=1`"
        return f"delegate the control groups: {DELEGATION}"

    @property
    def storage_advice(self) -> str:
        if self.storage_driver != SLOW_DRIVER:
            return ""
        return (
            'each container is a copy of the whole image; set `driver = "overlay"` below `[storage]` in '
            "~/.config/containers/storage.conf, or /etc/containers/storage.conf for root, then `podman system reset`"
        )


def read_info(engine: Engine) -> EngineInfo:
    """An engine that says nothing of limits is taken to enforce none: some ignore them without a word."""
    try:
        values = json.loads(engine.check_output("info", "--format", "{{json .}}"))
    except ValueError:
        return EngineInfo()
    if isinstance(values, dict) and isinstance(values.get("host"), dict):
        return _podman(values)
    return _docker(values) if isinstance(values, dict) and values.get("ServerVersion") else EngineInfo()


def limits_in_force(info: EngineInfo, limits: Limits, warning: str) -> dict[str, Any]:
    """Their part of `isolation`; `warning` is what the engine printed when it started the subject's container.

    Where it warned, or does not state that it enforces a limit, `slopbox serve` enforces all but the CPUs.
    """
    enforced = frozenset() if warning else info.enforced
    reason = warning or info.warning
    return {
        "control_groups": {"memory", "processes"} <= enforced,
        "limits": limits.model_dump(mode="json", exclude=None if "cpus" in enforced else {"cpus"}),
        **({"warning": reason} if reason else {}),
    }


def _docker(values: Mapping[str, Any]) -> EngineInfo:
    rootless = any("rootless" in str(option) for option in values.get("SecurityOptions") or ())
    version = str(values.get("CgroupVersion") or "")
    runtimes = values.get("Runtimes")
    return EngineInfo(
        "Docker",
        str(values["ServerVersion"]),
        rootless,
        version,
        str(values.get("Driver") or ""),
        _enforced({limit for key, limit in DOCKER_KEYS.items() if values.get(key) is True}, version, rootless=rootless),
        runtimes if isinstance(runtimes, dict) else {},
    )


def _podman(values: Mapping[str, Any]) -> EngineInfo:
    host = values["host"]
    rootless = (host.get("security") or {}).get("rootless") is not False
    version = str(host.get("cgroupVersion") or "").removeprefix("v")
    controllers = host.get("cgroupControllers") or ()
    return EngineInfo(
        "podman",
        str((values.get("version") or {}).get("Version") or ""),
        rootless,
        version,
        str((values.get("store") or {}).get("graphDriverName") or ""),
        _enforced(
            {limit for name, limit in PODMAN_CONTROLLERS.items() if name in controllers}, version, rootless=rootless
        ),
    )


def _enforced(stated: set[str], cgroup_version: str, *, rootless: bool) -> frozenset[str]:
    """The first version of control groups cannot be delegated."""
    return frozenset() if rootless and cgroup_version == "1" else frozenset(stated)
