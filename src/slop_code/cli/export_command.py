"""`slop-code export`: results in other formats."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.messages import print_written, unreadable_status
from slop_code.cli.shared_options import add_policy
from slop_code.reporting.exporters import BUILT_IN

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.shared_options import Commands


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "export",
        help="write results as JUnit, CTRF, CSV, Parquet or Markdown",
        description="Write the results of runs in another format. Nothing is evaluated.",
        epilog="Exit status: 0 written, 2 wrong use, 3 the file cannot be written, or a result cannot be read: it is "
        "named, and exported as a checkpoint without a verdict.",
        examples=["slop-code export runs/today --format junit -o results.xml", "slop-code export runs/* --format csv"],
    )
    option = parser.add_argument
    option("runs", nargs="+", type=Path, metavar="RUN_DIR", help="folder of an evaluated run")
    option(
        "--format",
        required=True,
        metavar="NAME",
        help=f"{', '.join(BUILT_IN)}, or the name of an exporter from an installed package",
    )
    option("-o", "--output", metavar="FILE", type=Path, help="write to this file (default: standard output)")
    add_policy(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code._io import open_atomic
    from slop_code.reporting.exporters import exporter
    from slop_code.runs.read_results import check_output, read_runs

    write = exporter(arguments.format)
    runs = read_runs(arguments.runs)
    entries = (entry for results in runs for entry in results.entries())
    output: Path | None = arguments.output
    if output is None:
        write(entries, sys.stdout.buffer, arguments.pass_policy)
        sys.stdout.buffer.flush()
    else:
        check_output(output)
        with open_atomic(output) as stream:
            write(entries, stream, arguments.pass_policy)
        print_written(output)
    return unreadable_status([message for results in runs for message in results.unreadable])
