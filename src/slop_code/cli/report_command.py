"""`slop-code report`: an HTML file about evaluated runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.messages import end_written, print_step
from slop_code.cli.shared_options import add_json, add_policy

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
            "slop-code report runs/today --open",
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
    option("--open", action="store_true", help="open the file in a browser: that of $BROWSER, else the usual one")
    add_json(parser, "print what was written as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.reporting.html.run_page import write_report
    from slop_code.reporting.text import file_safe
    from slop_code.runs.read_results import read_runs

    runs = read_runs(arguments.runs)
    size = write_report(runs, arguments.pass_policy, arguments.output)
    names = [file_safe(results.name) for results in runs]
    note = f" ({size / 1_000_000:.1f} MB)"
    status = end_written(arguments.output, runs, as_json=arguments.json, note=note, bytes=size, runs=names)
    if arguments.open:
        _open(arguments.output.resolve().as_uri())
    return status


def _open(address: str) -> None:
    """Without a screen, the module would start a browser in the terminal, which does not run the page's scripts."""
    import webbrowser

    has_screen = sys.platform == "darwin" or any(map(os.environ.get, ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")))
    if not has_screen or not webbrowser.open(address):
        why = "no browser could be started" if has_screen else "there is no screen here, so no browser was started"
        print_step(f"{why}; open {address} in one, on another machine after copying the file, or set $BROWSER")
