"""`slop-code eval-snapshot`: a snapshot against a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import EXIT_HELP
from slop_code.cli.shared_options import (
    add_environment,
    add_exit_zero,
    add_json,
    add_output,
    add_policy,
    add_problems_dir,
    add_replace,
    add_selection,
)

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.shared_options import Commands


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "eval-snapshot",
        help="evaluate a snapshot against a checkpoint of a problem",
        description="Evaluate a snapshot against a checkpoint of a problem.",
        epilog=EXIT_HELP,
        examples=[
            "slop-code eval-snapshot work/larder -p larder -c 1",
            "slop-code eval-snapshot work/larder -p problems/larder -c checkpoint_2 -e local -o out --json",
        ],
        verbose="show every step and every test",
    )
    option = parser.add_argument
    option("snapshot", metavar="DIR", type=Path, help="folder with the submission's files")
    option("-p", "--problem", "--problem-name", required=True, help="name or path of the problem")
    option("-c", "--checkpoint", required=True, help="number or name of the checkpoint")
    add_environment(parser)
    add_output(parser, "folder for evaluation.json and the raw reports")
    add_replace(parser)
    add_exit_zero(parser)
    add_policy(parser)
    add_selection(parser)
    option(
        "--pytest-arg",
        action="append",
        default=[],
        metavar="ARG",
        help="another argument for pytest, such as --pytest-arg=-l; repeatable",
    )
    add_problems_dir(parser)
    add_json(parser, "print evaluation.json instead of a table")
    option("--print-command", action="store_true", help="print the pytest command and exit without running it")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.cli.eval.eval_snapshot_action import evaluate_snapshot

    return evaluate_snapshot(arguments)
