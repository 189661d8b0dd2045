"""`slop-code show`: a stored result, or a test of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import print_json
from slop_code.cli.shared_options import add_policy

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.shared_options import Commands


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "show",
        help="show a stored result, or a test of it in full",
        description="Show a stored result, or a test of it in full. Nothing is evaluated.",
        epilog="Exit status: 0 shown, whatever the verdict; 2 wrong use or a result that cannot be read.",
        examples=[
            "slop-code show runs/today/larder/checkpoint_1",
            "slop-code show runs/today/larder/checkpoint_1 test_checkpoint_1.py::test_add",
        ],
        verbose="show every test",
    )
    option = parser.add_argument
    option("result", type=Path, metavar="RESULT", help="an evaluation.json, or the folder that holds it")
    option(
        "test",
        nargs="?",
        metavar="TEST",
        help="show only this test: file::id, its id, or a part that no other test has; directly after RESULT",
    )
    add_policy(parser)
    option("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.evaluation.result_files.test_lookup import one_test
    from slop_code.runs.folders.result_folders import result_at
    from slop_code.runs.scb.load_result import load_result

    path = result_at(arguments.result)
    results = load_result(path)
    test = None if arguments.test is None else one_test(results, arguments.test, arguments.result)
    if arguments.json:
        print_json((test or results).model_dump(mode="json"))
        return Exit.PASSED
    from slop_code.reporting.result_lines import show_stored, show_test

    if test is None:
        from slop_code.reporting.agent_text import agent_text
        from slop_code.runs.scb.scb_lines import agent_of_result

        agent = agent_text(*agent_of_result(path.parent, results.problem_name, results.checkpoint_name))
        show_stored(results, arguments.pass_policy, arguments.result, agent, every=arguments.verbose)
    else:
        show_test(results, test, arguments.result)
    return Exit.PASSED
