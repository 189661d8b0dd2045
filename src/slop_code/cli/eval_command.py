"""`slop-code eval`, `eval-problem` and `merge`: their options. What they do is loaded when one of them is called."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import EXIT_HELP
from slop_code.cli.shared_options import add_policy
from slop_code.evaluation.problem_lookup import PROBLEMS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from slop_code.cli.shared_options import Commands

LAYOUT = "<problem>/<checkpoint>/snapshot"
MOST_WORKERS = 1024
MOST_RETRIES = 1000


def add_to(commands: Commands) -> None:
    whole = _command(commands, "eval", "evaluate whole runs", f"Evaluate every {LAYOUT} of one run or several.")
    option = whole.add_argument
    option("runs", nargs="+", type=Path, metavar="RUN_DIR", help=f"folder with {LAYOUT}")
    option("--problem", action="append", default=[], help="only this problem of the runs; repeatable")
    option("-o", "--output", metavar="OUT", type=Path, help="folder for the summary of all runs together")
    _add_evaluating(whole)
    _add_judging(whole)
    whole.set_defaults(run=_late("evaluate"))

    one = _command(
        commands, "eval-problem", "evaluate one problem's checkpoints", "Evaluate each <checkpoint>/snapshot."
    )
    option = one.add_argument
    option("folder", type=Path, metavar="DIR", help="folder with <checkpoint>/snapshot")
    option("-p", "--problem", help="name or path of the problem (default: the folder's name)")
    _add_evaluating(one)
    _add_judging(one)
    one.set_defaults(run=_late("evaluate_problem"), output=None)

    merge = _command(
        commands,
        "merge",
        "bring the results of shards together",
        "Gather results from copies of a run folder, check that every one is there and up to date, and summarise them. "
        "Nothing is evaluated.",
    )
    option = merge.add_argument
    option("folder", type=Path, metavar="RUN_DIR", help=f"the run, with {LAYOUT}")
    option("copies", nargs="*", type=Path, metavar="COPY", help="folders of the same layout with results of shards")
    _add_judging(merge)
    merge.set_defaults(run=_late("merge"), output=None)


def _late(action: str) -> Callable[[argparse.Namespace], int]:
    def call(arguments: argparse.Namespace) -> int:
        status: int = getattr(importlib.import_module("slop_code.cli.whole_runs"), action)(arguments)
        return status

    return call


def _command(commands: Commands, name: str, words: str, description: str) -> argparse.ArgumentParser:
    return commands.add_parser(name, help=words, description=description, epilog=EXIT_HELP, allow_abbrev=False)


def _add_judging(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "-e",
        "--environment",
        help="name or path of the environment (default: environment.yaml of the problem's folder or run, else local)",
    )
    add_policy(parser)
    option("--problems-dir", type=Path, help=f"where problems are (default: ${PROBLEMS_VARIABLE}, else problems)")
    option("--json", action="store_true", help="print summary.json instead of a table")


def _add_evaluating(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument
    option("-j", "--num-workers", type=_workers, metavar="N", help="evaluations at a time (default: one per processor)")
    option("--overwrite", action="store_true", help="evaluate again what is up to date or stored")
    option("--dry-run", action="store_true", help="show what would be done and why, and do nothing")
    option("--retries", type=_retries, default=2, metavar="N", help="after infrastructure failures (default: 2)")
    option("--shard", metavar="I/N", help="only every N-th job of the plan, from the I-th; then use merge")
    option(
        "--executor",
        default="threads",
        metavar="NAME",
        help="threads, ray, or one that a package brings (default: threads)",
    )
    option("--ray-address", metavar="ADDRESS", help="of the Ray cluster (default: $RAY_ADDRESS)")
    option(
        "--live-progress",
        action=argparse.BooleanOptionalAction,
        help="redraw the progress, or print a line for each event (default: by whether this is a terminal)",
    )


def _workers(text: str) -> int:
    return _number(text, 1, MOST_WORKERS)


def _retries(text: str) -> int:
    return _number(text, 0, MOST_RETRIES)


def _number(text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and least <= int(text) <= most):
        raise argparse.ArgumentTypeError(f"expected a whole number from {least} to {most}")
    return int(text)
