"""`slop-code export-task`: a problem as a task of another system."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import print_json, print_written
from slop_code.cli.shared_options import add_json, add_problems_dir

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.shared_options import Commands

FORMATS = ("harbor",)
BASE_IMAGE = "ghcr.io/astral-sh/uv:python3.12-trixie-slim"


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "export-task",
        help="write a problem as a task of Harbor, without its tests",
        description="Write a problem as a task of another system: specifications, image and static assets. No test and "
        "no solution is in it, which is checked.",
        epilog="Exit status: 0 written; 2 wrong use, or the task would have a test or a solution: nothing is written.",
        examples=["slop-code export-task problems/larder --format harbor -o tasks/larder"],
    )
    option = parser.add_argument
    option("problem", metavar="PROBLEM", help="its name or folder")
    option("--format", required=True, choices=FORMATS, help="the system that the task is for")
    option("-o", "--output", required=True, metavar="DIR", type=Path, help="a new or an empty folder for the task")
    option(
        "--base-image",
        default=BASE_IMAGE,
        metavar="IMAGE",
        help=f"image of the agent's container, with bash and the problem's language (default: {BASE_IMAGE})",
    )
    add_problems_dir(parser)
    add_json(parser, "print what was written as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.bridges.harbor_task import VERIFIER, export_harbor_task
    from slop_code.evaluation.problem.problem_lookup import find_problem
    from slop_code.reporting.text import file_safe

    problem = find_problem(arguments.problem, arguments.problems_dir)
    export_harbor_task(problem, arguments.output, arguments.base_image)
    if arguments.json:
        written = file_safe(str(arguments.output))
        print_json({"written": written, "format": arguments.format, "verifier": VERIFIER})
        return Exit.PASSED
    print_written(arguments.output)
    print(f"run it: harbor run -p {arguments.output} --verifier {VERIFIER}")
    return Exit.PASSED
