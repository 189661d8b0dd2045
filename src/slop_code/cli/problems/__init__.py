"""`slop-code problems`: writing problems, and whether they are sound."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slop_code.cli.commands import Commands

MODULES = ("new", "ls", "show", "check", "run")


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("problems", allow_abbrev=False, help="write problems, and see whether they are sound")
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in MODULES:
        if importlib.util.find_spec(f"{__name__}.{name}"):
            importlib.import_module(f"{__name__}.{name}").add_to(actions)
