"""Options that SlopCodeBench users write before the command, as aliases of the command's own options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.messages import print_step
from slop_code.runs.layout_names import SNAPSHOT

if TYPE_CHECKING:
    import argparse

PREFIX = "before_command_"
"""Of the destinations here: the defaults of a command would replace values of the same name."""

QUIET = ("-q", "--quiet")
"""No command has this option itself."""

ALIASES = {"overwrite": False, "problems_dir": None, "snapshot_dir": SNAPSHOT, "quiet": False}
"""Destinations of the commands' own options, each with the value where it is given nowhere.

The options of a command have no default, or False: any other value was given after the command, and stays.
"""


def add_before_command(parser: argparse.ArgumentParser) -> None:
    def option(*names: str, dest: str, **options: object) -> None:
        parser.add_argument(*names, dest=PREFIX + dest, **options)  # type: ignore[arg-type]

    option("--debug", dest="debug", action="store_true", help="the same as -v")
    option(*QUIET, dest="quiet", action="store_true", help="evaluate without showing the progress")
    option("--overwrite", dest="overwrite", action="store_true", help="the same as --overwrite after the command")
    option(
        "-p",
        "--problem-path",
        dest="problems_dir",
        type=Path,
        metavar="DIR",
        help="the same as --problems-dir after the command",
    )
    option(
        "--snapshot-dir-name",
        dest="snapshot_dir",
        metavar="NAME",
        help="the same as --snapshot-dir after the command",
    )
    option("--seed", dest="seed", type=int, metavar="N", help="accepted without effect, as nothing here is random")


def apply_before_command(arguments: argparse.Namespace) -> argparse.Namespace:
    """Give the command the values from before it. Commands without such an option ignore the value."""
    values = vars(arguments)
    given = {name: values.pop(PREFIX + name) for name in (*ALIASES, "debug", "seed")}
    values["verbose"] = values["verbose"] or given["debug"]
    for name, default in ALIASES.items():
        if name in values and values[name] in (None, False):
            values[name] = given[name] or default
    if given["seed"] is not None:
        print_step("--seed has no effect: no verdict depends on random numbers")
    return arguments
