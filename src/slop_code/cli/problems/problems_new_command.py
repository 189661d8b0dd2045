"""`slop-code problems new`: write a working problem to start from."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import print_json, print_written
from slop_code.cli.shared_options import add_json
from slop_code.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from slop_code.authoring.new.scaffold import Blueprint
    from slop_code.cli.shared_options import Commands

KINDS = ("cli", "http")
QUESTIONS = {"kind": f"which kind of problem ({', '.join(KINDS)})?", "author": "who is the author?"}


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "new",
        examples=["slop-code problems new larder", "slop-code problems new larder --kind http"],
        help="write a working problem to start from",
        description="Write a working problem to start from, in Python with two checkpoints: configuration, "
        "specifications, tests in all groups and reference solutions. On a terminal, what no option gives is asked.",
        epilog="Exit status: 0 written, 2 wrong use, or the folder exists already.",
    )
    option = parser.add_argument
    option("name", metavar="NAME", help="name of the problem and of its folder")
    option("--kind", choices=KINDS, help="a command-line program or an HTTP service (default: cli)")
    option("--author", metavar="TEXT", help="author in config.yaml (default: none)")
    option(
        "--directory",
        metavar="DIR",
        type=Path,
        help="parent of the new folder (default: $SCBENCH_PROBLEMS_DIR, else problems)",
    )
    add_json(parser, "print the folder and the next commands as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.authoring.new.scaffold import free_target, write_problem
    from slop_code.evaluation.problem.problem_lookup import DEFAULT_PROBLEMS, named_problems_folder
    from slop_code.reporting.problem_lines import next_commands
    from slop_code.reporting.text import file_safe

    parent = named_problems_folder(arguments.directory) or DEFAULT_PROBLEMS
    free_target(arguments.name, parent)
    interactive = sys.stdin.isatty() and sys.stderr.isatty()
    folder = write_problem(blueprint_of(arguments, ask if interactive else None), parent)
    commands = next_commands(folder, arguments.directory is None)
    if arguments.json:
        print_json({"written": file_safe(str(folder)), "next": commands})
        return Exit.PASSED
    print_written(folder)
    for purpose, command in commands.items():
        print(f"{f'{purpose} it:':9} {command}")
    return Exit.PASSED


def blueprint_of(arguments: argparse.Namespace, answer: Callable[[str, str], str] | None) -> Blueprint:
    """`answer(question, default)` asks for values that no option gave; None without a terminal."""
    from slop_code.authoring.new.scaffold import Blueprint

    given = {name: getattr(arguments, name) for name in QUESTIONS if getattr(arguments, name) is not None}
    draft = Blueprint(arguments.name, **given)
    for name, question in QUESTIONS.items():
        if answer is not None and name not in given:
            draft = refined(draft, name, question, answer)
    return draft


def refined(draft: Blueprint, name: str, question: str, answer: Callable[[str, str], str]) -> Blueprint:
    """The question is repeated until the answer is valid."""
    while True:
        try:
            return replace(draft, **{name: answer(question, getattr(draft, name))})
        except UsageError as error:
            print(error, file=sys.stderr)


def ask(question: str, default: str) -> str:
    """Questions go to stderr, so that stdout has the result alone."""
    print(f"{question} [{default}] ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        print(file=sys.stderr)  # the end of input: the remaining answers are defaults
    return line.strip() or default
