"""`slop-code env`: environments that ship with the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.cli.command_parser import add_commands
from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import print_json
from slop_code.cli.shared_options import add_json

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.shared_options import Commands


def add_to(commands: Commands) -> None:
    group = commands.add_parser(
        "env",
        help="list the environments that ship with slop-code",
        description="Environments that ship with slop-code.",
        examples=["slop-code env ls"],
    )
    ls = add_commands(group).add_parser(
        "ls",
        aliases=["list"],
        help="list the environments that -e takes by name",
        description="List the environments that -e takes by name, and the versions of Python for submissions.",
        examples=["slop-code env ls"],
    )
    add_json(ls)
    ls.set_defaults(run=run_ls)


def run_ls(arguments: argparse.Namespace) -> int:
    from slop_code.execution.environment import shipped_environments
    from slop_code.execution.python_version import installed_pythons

    versions = list(dict.fromkeys(python.version for python in installed_pythons()))
    if arguments.json:
        print_json({"environments": shipped_environments(), "python": versions})
        return Exit.PASSED
    for name, description in shipped_environments().items():
        print(f"{name:24} {description}")
    print(f"{'python':24} {', '.join(versions) or 'none'}")
    return Exit.PASSED
