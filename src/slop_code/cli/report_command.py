"""`slop-code report`: an HTML file about evaluated runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.messages import print_written, unreadable_status
from slop_code.cli.shared_options import add_policy

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.shared_options import Commands


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "report",
        help="write evaluated runs as an HTML file",
        description="Write an HTML file that shows evaluated runs: which checkpoints passed, where tests started to "
        "break, and why. The file opens from disk and needs no server.",
        epilog="Exit status: 0 written, whatever the verdicts; 2 wrong use; 3 the file cannot be written, or a result "
        "cannot be read: it is named, and shown as a checkpoint without a verdict.",
        examples=[
            "slop-code report runs/today",
            "slop-code report runs/a runs/b -o both.html --pass-policy core-cases",
        ],
    )
    option = parser.add_argument
    option("runs", nargs="+", type=Path, metavar="RUN_DIR", help="an evaluated run, or a part of one")
    option(
        "-o",
        "--output",
        type=Path,
        default=Path("report.html"),
        metavar="FILE",
        help="file to write (default: report.html)",
    )
    add_policy(parser, repeatable=True)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.reporting.html.run_page import write_report
    from slop_code.runs.read_results import read_runs

    runs = read_runs(arguments.runs)
    size = write_report(runs, arguments.pass_policy, arguments.output)
    print_written(arguments.output, f" ({size / 1_000_000:.1f} MB)")
    return unreadable_status([message for results in runs for message in results.unreadable])
