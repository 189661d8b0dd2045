"""`slop-code problems show`: show a problem in detail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.cli.messages import closed_pipe_ignored, print_json, print_progress
from slop_code.cli.problems.problems_ls_command import status_of
from slop_code.cli.shared_options import add_environment, add_json, add_problems_dir

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.shared_options import Commands


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "show",
        examples=["slop-code problems show larder", "slop-code problems show problems/larder --json"],
        help="show a problem: checkpoints, tests, assets, dependencies, times of the reference",
        description="Show a problem: checkpoints with their tests by group, assets, dependencies, markers, and how "
        "long the reference took the last time it was evaluated here. Nothing is evaluated.",
        epilog="Exit status: 0 shown, 2 wrong use or a problem that does not load, 3 tests that cannot be collected.",
    )
    option = parser.add_argument
    option("problem", nargs="?", default=".", metavar="PROBLEM", help="its name or folder (default: this folder)")
    add_environment(parser)
    add_problems_dir(parser)
    add_json(parser, "print it as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.authoring.problem_folders import environment_for
    from slop_code.authoring.problem_overview import overview
    from slop_code.evaluation.problem.problem_lookup import find_problem
    from slop_code.execution.cache import Cache
    from slop_code.reporting.problem_lines import as_json, problem_lines
    from slop_code.reporting.terminal import ResultConsole, print_lines

    problem = find_problem(arguments.problem, arguments.problems_dir)
    details = overview(problem, environment_for(problem, arguments.environment), Cache.default(), print_progress)
    with closed_pipe_ignored():
        if arguments.json:
            print_json(as_json(details))
        else:
            print_lines(ResultConsole(), problem_lines(details))
    return status_of([details])
