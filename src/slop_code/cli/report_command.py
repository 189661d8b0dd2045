"""`slop-code report`: evaluated runs as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.shared_options import add_policy, tell_written

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.shared_options import Commands


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "report",
        allow_abbrev=False,
        help="evaluated runs as one HTML file",
        description="Write one HTML file that shows evaluated runs: did it pass, where did it start to break, why. "
        "It opens from disk, and asks nothing of any server.",
    )
    option = parser.add_argument
    option("runs", nargs="+", type=Path, metavar="RUN_DIR", help="evaluated runs, or results of one")
    option("-o", "--output", type=Path, default=Path("report.html"), help="the file (default: report.html)")
    add_policy(parser, repeatable=True)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.reporting.html.report import write_report
    from slop_code.runs.read_results import read_runs

    size = write_report(read_runs(arguments.runs), arguments.pass_policy, arguments.output)
    tell_written(arguments.output, f" ({size / 1_000_000:.1f} MB)")
    return Exit.PASSED
