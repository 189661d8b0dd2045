"""Options that several commands have."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._safe_text import escape_control
from slop_code.cli.messages import MAX_TEXT_BYTES
from slop_code.errors import UsageError
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import PassPolicy, Policy, named_meanings, parse_policy
from slop_code.evaluation.problem.problem_lookup import HOME_VARIABLE, PATH_VARIABLE, PROBLEMS_VARIABLE
from slop_code.runs.layout_names import SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Callable

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_policy(
    parser: argparse.ArgumentParser, *, repeatable: bool = False, default: str = PassPolicy.ALL_CASES
) -> None:
    """The value is a policy; where the option is repeatable, a list of policies that may be empty.

    `default`: the default as the help says it.
    """
    more = "; repeatable, the first is shown first" if repeatable else ""
    named = "; ".join(f"{names} ({meaning})" for names, meaning in named_meanings())
    parser.add_argument(
        "--pass-policy",
        type=parsed_policy,
        action="append" if repeatable else "store",
        default=[] if repeatable else PassPolicy.ALL_CASES,
        metavar="POLICY",
        help=f"what counts as passed: {named}; "
        f"or an expression such as 'core == 1 and regression >= 95%%' (default: {default}){more}",
    )


def add_problems_dir(parser: argparse.ArgumentParser, *, first: str = "", second: str = "") -> None:
    """`first` and `second` are defaults that come before and after the first environment variable."""
    default = f"{first}${PROBLEMS_VARIABLE}, {second}else ${PATH_VARIABLE}, ${HOME_VARIABLE}/problems or problems"
    parser.add_argument(
        "--problems-dir",
        type=Path,
        metavar="DIR",
        help=f"folder in which problems are found by name (default: {default})",
    )


def add_environment(parser: argparse.ArgumentParser, default: str = "the problem's own, else local") -> None:
    option = parser.add_argument
    option("-e", "--environment", "--env-config", help=f"name or path of the environment (default: {default})")


def add_output(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("-o", "--output", "--save-dir", metavar="OUT", type=Path, help=text)


def add_problem_names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--problem", action="append", default=[], help="only this problem of the runs; repeatable")


def add_workers(parser: argparse.ArgumentParser, work: str = "evaluations") -> None:
    help_text = f"{work} at a time (default: one per processor)"
    parser.add_argument("-j", "--num-workers", "-proc", type=whole_number(1, 1024), metavar="N", help=help_text)


def add_retries(parser: argparse.ArgumentParser) -> None:
    help_text = "retries after an infrastructure failure (default: 2)"
    parser.add_argument("--retries", type=whole_number(0, 1000), default=2, metavar="N", help=help_text)


def add_executor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--executor",
        default="threads",
        metavar="NAME",
        help="threads, ray, or the name of an executor from an installed package (default: threads)",
    )
    parser.add_argument("--ray-address", metavar="ADDRESS", help="address of the Ray cluster (default: $RAY_ADDRESS)")


def add_live_progress(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--live-progress",
        action=argparse.BooleanOptionalAction,
        help="redraw the progress, or print a line for each event (default: redraw on a terminal)",
    )


def add_json(parser: argparse.ArgumentParser, text: str = "print JSON") -> None:
    parser.add_argument("--json", action="store_true", help=text)


def add_replace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--replace",
        action="store_true",
        help="where another program's files are in the place of results, rename them to NAME.scb and go on",
    )


def add_exit_zero(parser: argparse.ArgumentParser) -> None:
    """For scripts that expect status 0 whatever the tests say."""
    parser.add_argument(
        "--exit-zero",
        action="store_true",
        help="exit with status 0 where tests did not pass; other statuses stay",
    )


def add_snapshot_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--snapshot-dir",
        metavar="NAME",
        help=f"name of the folder of a snapshot in the folder of its checkpoint (default: {SNAPSHOT})",
    )


def merge_command(arguments: argparse.Namespace) -> str:
    """The `merge` that writes the summary of a run of which only a part was evaluated, with the options given there."""
    snapshot_dir = None if arguments.snapshot_dir == SNAPSHOT else arguments.snapshot_dir
    options = {"-e": arguments.environment, "-o": arguments.output, "--snapshot-dir": snapshot_dir}
    given = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    return shlex.join(["slop-code", "merge", "RUN_DIR", *given])


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Options that select tests; the result is never a verdict."""
    option = parser.add_argument
    option("-k", dest="keyword", metavar="EXPRESSION", help="run only the tests that match (pytest -k)")
    option("-m", dest="marker", metavar="EXPRESSION", help="run only the tests with these markers (pytest -m)")
    option("--group", action="append", default=[], help=f"run only this group: {', '.join(GroupType)}; repeatable")
    option("--test", action="append", default=[], metavar="NODE_ID", help="run only this test or file; repeatable")


def selection_words(arguments: argparse.Namespace) -> list[str]:
    """The arguments for pytest that the options of `add_selection` stand for."""
    words = ["-k", arguments.keyword] if arguments.keyword else []
    words += ["-m", arguments.marker] if arguments.marker else []
    words += [f"--group={name}" for name in arguments.group]
    for name in arguments.test:
        if name.startswith("-"):
            raise UsageError(
                f"--test {escape_control(name, MAX_TEXT_BYTES)}: expected a node id, as in --test test_one.py::test_it"
            )
    return [*words, *arguments.test]


def add_problem_paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "problems",
        nargs="*",
        metavar="PATH",
        help="a problem's folder or name, or a folder of problems (default: this folder, else the problems folder)",
    )


def whole_number(minimum: int, maximum: int) -> Callable[[str], int]:
    """The type of an option that takes a number in these bounds."""

    def parse(text: str) -> int:
        if not (
            text.isascii() and text.isdecimal() and len(text) <= len(str(maximum)) and minimum <= int(text) <= maximum
        ):
            raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from {minimum} to {maximum}")
        return int(text)

    return parse


def parsed_policy(text: str) -> Policy:
    """The type of an option that takes a policy."""
    try:
        return parse_policy(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(escape_control(str(error), MAX_TEXT_BYTES)) from None
