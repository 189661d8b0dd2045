"""`slop-code cache`: what is built once and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slop_code.evaluation.command import LOCK, TOOL, TOOLS
from slop_code.evaluation.config import ProblemConfig
from slop_code.execution.cache import Cache
from slop_code.execution.setup import warm_tools

cache_app = typer.Typer(help="What is built once and kept.", no_args_is_help=True)


@cache_app.callback()
def cache() -> None:
    """What is built once and kept."""


@cache_app.command("warm")
def warm(
    problems: Annotated[
        list[Path] | None, typer.Argument(metavar="[PROBLEM]...", help="Folders of problems whose test dependencies are wanted too.")
    ] = None,
) -> None:
    """Fetch the locked test environment now, so that evaluations need no network for it."""
    store = Cache.default()
    wanted = [(), *[tuple(ProblemConfig.from_yaml(path).test_dependencies) for path in problems or []]]
    for extra in dict.fromkeys(wanted):
        tools = warm_tools(TOOL, TOOLS, extra, LOCK, store, lambda step: typer.echo(f"· {step}", err=True))
        typer.echo(f"ready: {len(tools.versions)} packages, pytest {tools.versions['pytest']} ({tools.constraints.parent})")
