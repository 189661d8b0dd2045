"""`slop-code cache`: what is built once and kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exits import Exit
from slop_code.evaluation.command import LOCK, TOOL, TOOLS
from slop_code.evaluation.config import ProblemConfig
from slop_code.execution.boxes import sandbox_for
from slop_code.execution.cache import Cache
from slop_code.execution.prune import prune
from slop_code.execution.spec import load_environment
from slop_code.execution.tools import warm_tools

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.commands import Commands


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("cache", allow_abbrev=False, help="what is built once and kept")
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    warm = actions.add_parser(
        "warm",
        allow_abbrev=False,
        help="fetch the locked test environment now",
        description="Fetch the locked test environment now, so that evaluations need no network for it.",
    )
    option = warm.add_argument
    option("problems", nargs="*", type=Path, metavar="PROBLEM", help="problems whose test dependencies are wanted")
    option("-e", "--environment", default="local", help="name or path of the environment (default: local)")
    warm.set_defaults(run=run_warm)
    clear = actions.add_parser(
        "prune",
        allow_abbrev=False,
        help="remove what killed evaluators left behind",
        description="Remove what killed evaluators left behind: folders, containers, volumes, images.",
    )
    option = clear.add_argument
    option("--all", action="store_true", help="also everything that is kept; the next evaluation builds it anew")
    option("--docker", default="docker", metavar="BINARY", help="the container engine's command (default: docker)")
    clear.set_defaults(run=run_prune)


def run_warm(arguments: argparse.Namespace) -> int:
    store = Cache.default()
    wanted = [(), *[tuple(ProblemConfig.from_yaml(path).test_dependencies) for path in arguments.problems]]
    sandbox = sandbox_for(load_environment(arguments.environment), store, _tell)
    for extra in dict.fromkeys(wanted):
        tools = warm_tools(sandbox, TOOL, TOOLS, extra, LOCK, store, _tell)
        print(f"ready: {len(tools.versions)} packages, pytest {tools.versions['pytest']}")
    return Exit.PASSED


def run_prune(arguments: argparse.Namespace) -> int:
    for line in prune(Cache.default(), arguments.docker, everything=arguments.all):
        print(line)
    return Exit.PASSED


def _tell(step: str) -> None:
    print(f"· {step}", file=sys.stderr, flush=True)
