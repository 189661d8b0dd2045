"""`slop-code export`: results in other formats."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.messages import end_written
from slop_code.cli.shared_options import add_json, add_policy
from slop_code.errors import UsageError
from slop_code.reporting.exporters import BUILT_IN, SCB, Skips, exporter

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from slop_code.cli.shared_options import Commands
    from slop_code.reporting.exporters import Exporter
    from slop_code.runs.read_results import RunResults


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "export",
        help="write results as JUnit, CTRF, CSV, Parquet, Markdown, scores for Inspect or a SlopCodeBench run",
        description="Write the results of runs in another format. Nothing is evaluated.",
        epilog="Exit status: 0 written, 2 wrong use, 3 the file cannot be written, or a result cannot be read: it is "
        "named, and exported as a checkpoint without a verdict.",
        examples=[
            "slop-code export runs/today --format junit -o results.xml",
            "slop-code export runs/today --format scb -o exported",
        ],
    )
    option = parser.add_argument
    option("runs", nargs="+", type=Path, metavar="RUN_DIR", help="folder of an evaluated run")
    option(
        "--format",
        required=True,
        metavar="NAME",
        help=f"{', '.join([*BUILT_IN, SCB])}, or the name of an exporter from an installed package",
    )
    option(
        "-o",
        "--output",
        metavar="PATH",
        type=Path,
        help="write to this file (default: standard output); for scb, to this new or empty folder",
    )
    option(
        "--skips",
        choices=[*Skips],
        help="scb: leave skipped tests out of the totals (default), or count them as not passed",
    )
    add_policy(parser)
    add_json(parser, "with -o: print what was written as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.runs.read_results import read_runs

    if arguments.json and arguments.output is None:
        raise UsageError("--json needs -o: without it, standard output is the export itself")
    if arguments.format == SCB:
        runs = read_runs(arguments.runs)
        _export_folder(runs, arguments.output, Skips(arguments.skips or Skips.LEAVE_OUT))
    elif arguments.skips is not None:
        raise UsageError(f"--skips is for --format {SCB}: the other formats have every test with its status")
    else:
        write = exporter(arguments.format)
        runs = read_runs(arguments.runs)
        _export_stream(write, runs, arguments)
    return end_written(arguments.output, runs, as_json=arguments.json, format=arguments.format)


def _export_folder(runs: Sequence[RunResults], output: Path | None, skips: Skips) -> None:
    from slop_code.reporting.exporters.scb.export_folder import export_folder

    if output is None:
        raise UsageError(f"--format {SCB} writes a folder; give a new or an empty one with -o")
    export_folder(runs, output, skips)


def _export_stream(write: Exporter, runs: Sequence[RunResults], arguments: argparse.Namespace) -> None:
    from slop_code._io import open_atomic
    from slop_code.runs.folders.result_folders import check_output

    entries = (entry for results in runs for entry in results.entries())
    output: Path | None = arguments.output
    if output is None:
        write(entries, sys.stdout.buffer, arguments.pass_policy)
        sys.stdout.buffer.flush()
    else:
        check_output(output)
        with open_atomic(output) as stream:
            write(entries, stream, arguments.pass_policy)
