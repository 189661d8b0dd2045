"""`slop-code problems new`: a working problem to start from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.commands import tell_written
from slop_code.cli.exits import Exit
from slop_code.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from slop_code.authoring.scaffold import Blueprint
    from slop_code.cli.commands import Commands

KINDS = ("cli", "http")
LANGUAGES = ("python", "shell", "javascript")
DEFAULTS = {"kind": "cli", "checkpoints": "2", "language": "python", "author": ""}


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "new",
        help="write a working problem to start from",
        description="Write a working problem to start from: configuration, specifications, tests in all groups and "
        "reference solutions. What no option says is asked for on a terminal, and has a default elsewhere.",
        epilog="Exit status: 0 written, 2 wrong use, or something is there already.",
        allow_abbrev=False,
    )
    option = parser.add_argument
    option("name", metavar="NAME", help="of the problem, and of its folder")
    option("--kind", choices=KINDS, help="a command-line program or an HTTP service (default: cli)")
    option("--checkpoints", metavar="N", help="how many, from 1 to 9 (default: 2)")
    option("--language", choices=LANGUAGES, help="of the reference solutions (default: python)")
    option("--author", metavar="TEXT", help="for config.yaml (default: none)")
    option(
        "--directory",
        metavar="DIR",
        type=Path,
        help="where the folder is made (default: $SCBENCH_PROBLEMS_DIR, else problems)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.authoring.scaffold import check_name, write_problem
    from slop_code.evaluation.find import problems_folder
    from slop_code.reporting.problem_lines import written_lines

    check_name(arguments.name)
    interactive = sys.stdin.isatty() and sys.stderr.isatty()
    blueprint = blueprint_of(arguments, ask if interactive else lambda _question, default: default)
    folder = write_problem(blueprint, problems_folder(arguments.directory))
    tell_written(folder)
    for line in written_lines(folder, arguments.directory is None, missing_program(blueprint)):
        print(line)
    return Exit.PASSED


def blueprint_of(arguments: argparse.Namespace, asked: Callable[[str, str], str]) -> Blueprint:
    """`asked(question, default)`: what is not given as an option."""
    from slop_code.authoring.scaffold import Blueprint, has_templates

    def value(name: str, question: str) -> str:
        given: str | None = getattr(arguments, name)
        return asked(question, DEFAULTS[name]) if given is None else given

    kind = value("kind", f"what is it ({', '.join(KINDS)})?")
    fitting = [language for language in LANGUAGES if has_templates(kind, language)]
    checkpoints = value("checkpoints", "how many checkpoints (1 to 9)?")
    if not (checkpoints.isascii() and checkpoints.isdecimal() and len(checkpoints) < 4):
        raise UsageError(f"{checkpoints!r} checkpoints; give a number from 1 to 9")
    language = value("language", f"what is the reference written in ({', '.join(fitting or LANGUAGES)})?")
    author = value("author", "who is the author?")
    return Blueprint(arguments.name, kind, int(checkpoints), language, author)


def ask(question: str, default: str) -> str:
    """On standard error, so that standard output has the result alone."""
    print(f"{question} [{default}] ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        print(file=sys.stderr)  # the end of input: what is left has its default
    return line.strip() or default


def missing_program(blueprint: Blueprint) -> str | None:
    """What has to be installed before the reference can run here."""
    import shutil

    from slop_code.authoring.scaffold import LANGUAGES
    from slop_code.execution.boxes import PATH

    language = LANGUAGES[blueprint.language]
    if language.package is None or shutil.which(language.program, path=PATH):
        return None
    return f"no {language.program} where submissions find programs ({PATH}); Debian's package is {language.package}"
