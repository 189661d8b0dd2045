"""`slop-code leaderboard`: a table of agents over evaluated runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._suggestions import near_or_known
from slop_code.cli.messages import end_written
from slop_code.cli.shared_options import add_json, add_policy
from slop_code.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.shared_options import Commands
    from slop_code.comparison.leaderboard import Leaderboard

FORMATS = ("table", "csv", "json", "markdown")


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "leaderboard",
        help="rank the agents of evaluated runs in one table",
        description="Rank the agents of evaluated runs. Runs of the same agent are samples, in one row. A checkpoint "
        "without a verdict counts as not solved, and the table says how many there are. Nothing is evaluated.",
        epilog="Exit status: 0 written, whatever the verdicts; 2 wrong use; 3 the file cannot be written, or a result "
        "cannot be read: it is named, and counts as a checkpoint without a verdict.",
        examples=[
            "slop-code leaderboard runs/* --sort cost",
            "slop-code leaderboard runs/* --format csv -o leaderboard.csv",
        ],
    )
    option = parser.add_argument
    option("runs", nargs="+", type=Path, metavar="RUN_DIR", help="folder of an evaluated run, or of several")
    option("--format", choices=FORMATS, help=f"{', '.join(FORMATS)} (default: table)")
    option("-o", "--output", metavar="FILE", type=Path, help="write to this file (default: standard output)")
    option("--sort", metavar="COLUMN", help="order by this column of the CSV file (default: the first policy, then "
        "strict, isolated and core, as shares of all planned checkpoints)")  # fmt: skip
    add_json(parser, "same as --format json; with -o, print what was written as JSON")
    add_policy(parser, repeatable=True, default="none: strict, isolated and core alone")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code._io import write_atomic
    from slop_code.comparison.leaderboard import build_leaderboard
    from slop_code.reporting.leaderboard.agent_runs import read_agent_runs
    from slop_code.reporting.leaderboard.leaderboard_files import RENDERERS
    from slop_code.runs.folders.result_folders import check_output
    from slop_code.runs.read_results import read_runs

    output: Path | None = arguments.output
    chosen = arguments.format or ("json" if arguments.json and output is None else "table")
    if output is not None:
        check_output(output)
    elif arguments.json and chosen != "json":
        raise UsageError(f"--json prints JSON: leave --format {chosen} out, or write it to a file with -o")
    runs = read_runs(arguments.runs)
    board = build_leaderboard(read_agent_runs(runs), list(dict.fromkeys(arguments.pass_policy)))
    if arguments.sort is not None:
        board = _sorted(board, arguments.sort)
    if output is not None:
        write_atomic(output, RENDERERS[chosen](board))
    elif chosen != "table":
        sys.stdout.write(RENDERERS[chosen](board))
        sys.stdout.flush()
    else:
        from slop_code.reporting.leaderboard.leaderboard_table import show_leaderboard
        from slop_code.reporting.terminal import ResultConsole

        show_leaderboard(board, ResultConsole())
    return end_written(output, runs, as_json=arguments.json, format=chosen)


def _sorted(board: Leaderboard, name: str) -> Leaderboard:
    from slop_code.reporting.leaderboard.board_columns import columns_of, sorted_rows

    columns = {column.name: column for column in columns_of(board)}
    if name not in columns:
        raise UsageError(f"--sort {name}: no such column{near_or_known(name, columns)}")
    return board.model_copy(update={"rows": sorted_rows(board.rows, columns[name])})
