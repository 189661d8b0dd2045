"""`slop-code problems ls`: list problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import closed_pipe_ignored, print_json, print_progress
from slop_code.cli.shared_options import add_json, add_problem_paths, add_problems_dir

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from slop_code.authoring.problem_overview import ProblemOverview, UnloadableProblem
    from slop_code.cli.shared_options import Commands


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "ls",
        aliases=["list"],
        examples=["slop-code problems ls", "slop-code problems ls problems/larder --json"],
        help="list problems: version, checkpoints, tests by group",
        description="List problems: version, difficulty, checkpoints, state, and the tests of the last checkpoint by "
        "group. They are collected once, without any submission.",
        epilog="Exit status: 0 listed; 2 wrong use, or a problem that does not load; "
        "3 a problem whose tests cannot be collected. The others are listed all the same.",
    )
    add_problem_paths(parser)
    add_problems_dir(parser)
    add_json(parser, "print a list as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.authoring.problem_folders import problem_folders
    from slop_code.authoring.problem_overview import overviews
    from slop_code.execution.cache import Cache
    from slop_code.reporting.problem_lines import as_json, listed_line

    folders = problem_folders(arguments.problems, arguments.problems_dir)
    problems = overviews(folders, Cache.default(), print_progress)
    with closed_pipe_ignored():
        if arguments.json:
            print_json([as_json(problem) for problem in problems])
        else:
            print("\n".join(map(listed_line, problems)), flush=True)
    return status_of(problems)


def status_of(problems: Sequence[ProblemOverview | UnloadableProblem]) -> Exit:
    from slop_code.authoring.problem_overview import UnloadableProblem

    if any(isinstance(problem, UnloadableProblem) for problem in problems):
        return Exit.USAGE
    failed = any(problem.error for problem in problems if not isinstance(problem, UnloadableProblem))
    return Exit.INFRASTRUCTURE if failed else Exit.PASSED
