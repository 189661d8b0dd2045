"""`slop-code cache`: what is built once and kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exits import Exit
from slop_code.evaluation.command import LOCK, TOOL, TOOLS
from slop_code.evaluation.config import ProblemConfig
from slop_code.execution.cache import Cache
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
    warm.add_argument(
        "problems",
        nargs="*",
        type=Path,
        metavar="PROBLEM",
        help="folders of problems whose test dependencies are wanted",
    )
    warm.set_defaults(run=run_warm)


def run_warm(arguments: argparse.Namespace) -> int:
    store = Cache.default()
    wanted = [(), *[tuple(ProblemConfig.from_yaml(path).test_dependencies) for path in arguments.problems]]
    for extra in dict.fromkeys(wanted):
        tools = warm_tools(
            TOOL, TOOLS, extra, LOCK, store, lambda step: print(f"· {step}", file=sys.stderr, flush=True)
        )
        print(f"ready: {len(tools.versions)} packages, pytest {tools.versions['pytest']}")
    return Exit.PASSED
