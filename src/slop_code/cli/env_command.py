"""`slop-code env`: the environments that ship with the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.execution.environment import shipped_environments

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.shared_options import Commands


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("env", allow_abbrev=False, help="environments that ship with slop-code")
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    ls = actions.add_parser("ls", allow_abbrev=False, help="list the environments that -e takes by name")
    ls.set_defaults(run=run_ls)


def run_ls(_arguments: argparse.Namespace) -> int:
    for name, description in shipped_environments().items():
        print(f"{name:24} {description}")
    return Exit.PASSED
