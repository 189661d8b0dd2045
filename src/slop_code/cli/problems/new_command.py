"""`slop-code problems new`: a working problem to start from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import print_written
from slop_code.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from slop_code.authoring.scaffold import Blueprint
    from slop_code.cli.shared_options import Commands

KINDS = ("cli", "http")
LANGUAGES = ("python", "shell", "javascript")
ASKED = {
    "kind": "what is it ({kinds})?",
    "checkpoints": "how many checkpoints (1 to 9)?",
    "language": "what is the reference written in ({languages})?",
    "author": "who is the author?",
}


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "new",
        examples=["slop-code problems new larder", "slop-code problems new larder --kind http --checkpoints 3"],
        help="write a working problem to start from",
        description="Write a working problem to start from: configuration, specifications, tests in all groups and "
        "reference solutions. What no option says is asked for on a terminal, and has a default elsewhere.",
        epilog="Exit status: 0 written, 2 wrong use, or something is there already.",
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
    from slop_code.authoring.scaffold import free_target, write_problem
    from slop_code.evaluation.problem_lookup import problems_folder
    from slop_code.reporting.problem_lines import written_lines

    parent = problems_folder(arguments.directory)
    free_target(arguments.name, parent)
    interactive = sys.stdin.isatty() and sys.stderr.isatty()
    blueprint = blueprint_of(arguments, ask if interactive else None)
    folder = write_problem(blueprint, parent)
    print_written(folder)
    for line in written_lines(folder, arguments.directory is None, missing_program(blueprint)):
        print(line)
    return Exit.PASSED


def blueprint_of(arguments: argparse.Namespace, answer: Callable[[str, str], str] | None) -> Blueprint:
    """`answer(question, default)`: what is not given as an option; None: nobody can be asked."""
    from slop_code.authoring.scaffold import Blueprint, has_templates

    given = {name: getattr(arguments, name) for name in ASKED if getattr(arguments, name) is not None}
    draft = changed(Blueprint(arguments.name), **given)
    if answer is None:
        return draft
    for name in [name for name in ASKED if name not in given]:
        kinds = [kind for kind in KINDS if has_templates(kind, draft.language)]
        languages = [language for language in LANGUAGES if has_templates(draft.kind, language)]
        question = ASKED[name].format(kinds=", ".join(kinds), languages=", ".join(languages))
        draft = refined(draft, name, question, answer)
    return draft


def refined(draft: Blueprint, name: str, question: str, answer: Callable[[str, str], str]) -> Blueprint:
    """Asks until the answer fits all that is known; the default always does."""
    while True:
        try:
            return changed(draft, **{name: answer(question, str(getattr(draft, name)))})
        except UsageError as error:
            print(error, file=sys.stderr)


def changed(draft: Blueprint, **values: str) -> Blueprint:
    from dataclasses import replace

    read: dict[str, Any] = {name: count(text) if name == "checkpoints" else text for name, text in values.items()}
    return replace(draft, **read)


def count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 4):
        raise UsageError(f"{text!r} checkpoints; give a number from 1 to 9")
    return int(text)


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
    from slop_code.execution.sandbox import PATH

    language = LANGUAGES[blueprint.language]
    if language.package is None or shutil.which(language.program, path=PATH):
        return None
    return f"no {language.program} where submissions find programs ({PATH}); Debian's package is {language.package}"
