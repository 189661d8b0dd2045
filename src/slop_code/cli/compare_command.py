"""`slop-code compare`: tests and checkpoints gained and lost between runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import closed_pipe_ignored, print_written, unreadable_status
from slop_code.cli.shared_options import add_json, add_policy
from slop_code.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.shared_options import Commands
    from slop_code.comparison.records import Comparison

EXIT_HELP = (
    "Exit status: 0 nothing was lost, 1 a test or a checkpoint was lost, 2 wrong use, "
    "3 nothing was lost, but a checkpoint with a verdict in BASE has none in OTHER, or a result cannot be read, "
    "130 interrupted."
)


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "compare",
        help="show which tests and checkpoints were gained and lost between evaluated runs",
        description="Compare evaluated runs with BASE: which tests and checkpoints were gained or lost, and whether "
        "the difference can be chance. With --samples, a folder of several runs is an agent, each run a sample of it.",
        epilog=EXIT_HELP,
        examples=["slop-code compare runs/monday runs/tuesday", "slop-code compare old-agent new-agent --samples -v"],
        verbose="list every test that differs",
    )
    option = parser.add_argument
    option("base", metavar="BASE", type=Path, help="an evaluated run, or with --samples a folder of such runs")
    option("others", metavar="OTHER", type=Path, nargs="+", help="one or more runs to compare with BASE")
    option("--samples", action="store_true", help="the runs of each folder are samples of the same agent")
    add_policy(parser)
    option("-o", "--output", metavar="FILE", type=Path, help="write an HTML page, too")
    add_json(parser, "print the comparison as JSON instead of a table")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.comparison.diff import compare_sides

    if arguments.output is not None:
        from slop_code.reporting.html.run_page import check_page

        check_page(arguments.output)
    folders = [arguments.base, *arguments.others]
    comparison, sides, sheets = compare_sides(folders, arguments.pass_policy, samples=arguments.samples)
    if not any(pair.checkpoints for pair in comparison.pairs):
        raise UsageError(f"{arguments.base}: no problem in common with the others; compare runs of the same problems")
    if arguments.output is not None:
        from slop_code.reporting.html.compare_page import write_comparison

        write_comparison(comparison, sides, sheets, arguments.output)
    with closed_pipe_ignored():
        _print(comparison, arguments)
    unreadable = unreadable_status(comparison.unreadable)
    return status_of(comparison) or unreadable


def _print(comparison: Comparison, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print(comparison.model_dump_json(indent=2), flush=True)
        return
    from slop_code.reporting.compare_table import show_comparison
    from slop_code.reporting.terminal import ResultConsole

    show_comparison(comparison, ResultConsole(), verbose=arguments.verbose)
    if arguments.output is not None:
        print_written(arguments.output)


def status_of(comparison: Comparison) -> Exit:
    """A checkpoint without a verdict counts neither as lost nor as kept."""
    if comparison.lost:
        return Exit.NOT_PASSED
    known = [any(change.compared for change in pair.checkpoints) and not pair.unanswered for pair in comparison.pairs]
    return Exit.PASSED if all(known) else Exit.INFRASTRUCTURE
