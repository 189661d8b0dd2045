"""`slop-code show`: a stored result, or a test of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import print_json, print_step
from slop_code.cli.shared_options import add_json, add_policy
from slop_code.errors import SlopCodeError
from slop_code.reporting.text import one_line

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.shared_options import Commands
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.evaluation.result_files.last_result import LastResult


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "show",
        help="show a stored result, or a test of it in full",
        description="Show a stored result, or a test of it in full; without RESULT, that of the last eval-snapshot "
        "without -o. Nothing is evaluated.",
        epilog="Exit status: 0 shown, whatever the verdict; 2 wrong use or a result that cannot be read.",
        examples=[
            "slop-code show",
            "slop-code show runs/today/larder/checkpoint_1 test_checkpoint_1.py::test_add",
        ],
        verbose="show every test with its message",
    )
    option = parser.add_argument
    option("result", nargs="?", metavar="RESULT", help="an evaluation.json, or the folder that holds it")
    option(
        "test",
        nargs="?",
        metavar="TEST",
        help="show only this test: file::id, its id, or a part that no other test has; directly after RESULT",
    )
    add_policy(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.evaluation.result_files.test_lookup import one_test

    given, results, name = _load(arguments.result, arguments.test)
    test = None if name is None else one_test(results, name, given)
    if arguments.json:
        print_json((test or results).model_dump(mode="json"))
        return Exit.PASSED
    from slop_code.reporting.result_lines import show_stored, show_test

    if test is None:
        from slop_code.reporting.agent_text import agent_text
        from slop_code.runs.folders.result_folders import result_at
        from slop_code.runs.scb.scb_lines import agent_of_result

        agent = agent_text(*agent_of_result(result_at(given).parent, results.problem_name, results.checkpoint_name))
        path = None if arguments.result is None else given
        show_stored(results, arguments.pass_policy, path, agent, verbose=arguments.verbose)
    else:
        show_test(results, test, given)
    return Exit.PASSED


def _load(result: str | None, test: str | None) -> tuple[Path, CorrectnessResults, str | None]:
    """The path of the result, the result, and the name of a test; one word that is no path may be that of a test."""
    from slop_code.evaluation.result_files.last_result import last_result
    from slop_code.runs.folders.result_folders import result_at
    from slop_code.runs.scb.load_result import load_result

    if result is None:
        return *_print_origin(last_result()), None
    if test is None and not os.path.lexists(result) and (last := _last_with(result)) is not None:
        return *_print_origin(last), result
    given = Path(result)
    return given, load_result(result_at(given)), test


def _last_with(name: str) -> LastResult | None:
    """The last result, where it has a test of this name, or of a similar one."""
    from slop_code.evaluation.result_files.last_result import last_result
    from slop_code.evaluation.result_files.test_lookup import close_names, find_tests

    try:
        last = last_result()
    except SlopCodeError:  # there is none, or it cannot be read
        return None
    return last if find_tests(last.results, name) or close_names(last.results, name) else None


def _print_origin(last: LastResult) -> tuple[Path, CorrectnessResults]:
    snapshot = f": {last.snapshot}" if last.snapshot else ""
    print_step(one_line(f"the last result of eval-snapshot without -o, of {last.written}{snapshot}"))
    return last.folder, last.results
