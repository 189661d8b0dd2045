"""`slop-code problems`: write, list and check problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.cli.command_parser import add_commands
from slop_code.cli.problems import problems_check_command as check
from slop_code.cli.problems import problems_ls_command as ls
from slop_code.cli.problems import problems_new_command as new
from slop_code.cli.problems import problems_run_command as run
from slop_code.cli.problems import problems_show_command as show

if TYPE_CHECKING:
    from slop_code.cli.shared_options import Commands


def add_to(commands: Commands) -> None:
    group = commands.add_parser(
        "problems",
        help="write, list and check problems",
        description="Write, list and check problems.",
        examples=["slop-code problems ls", "slop-code problems check problems/larder"],
    )
    actions = add_commands(group)
    for module in (new, ls, show, check, run):
        module.add_to(actions)
