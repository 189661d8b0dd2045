"""`slop-code rerun`: evaluate a stored result, or a test of it, again and show the differences."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code._io import BestEffortStream
from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import closed_pipe_ignored, print_json, print_progress, print_stored
from slop_code.cli.shared_options import add_environment, add_json, add_problems_dir
from slop_code.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from slop_code.cli.shared_options import Commands
    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.evaluation.result_files.stored_evaluation import StoredEvaluation
    from slop_code.verification.rerun_changes import RerunChanges

EXIT_HELP = (
    "Exit status: 0 the same statuses and verdicts, 1 something differs, 2 wrong use or configuration, "
    "3 infrastructure failure, 130 interrupted."
)
JSON_KEYS = {"message_changed": "message"}
"""Keys of the JSON output that are not the names of the fields."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "rerun",
        help="evaluate a stored result, or a test of it, again and show what differs",
        description="Evaluate a stored result, or a test of it, again and show what differs. Stored files stay as "
        "they are.",
        epilog=EXIT_HELP,
        examples=[
            "slop-code rerun runs/today/larder/checkpoint_1",
            "slop-code rerun runs/today/larder/checkpoint_1 test_checkpoint_1.py::test_add",
        ],
    )
    option = parser.add_argument
    option("result", metavar="RESULT", type=Path, help="an evaluation.json, or the folder that holds it")
    option(
        "test",
        nargs="?",
        metavar="TEST",
        help="run only this test: file::id, its id, or a part that no other test has; directly after RESULT",
    )
    option(
        "--snapshot",
        metavar="DIR",
        type=Path,
        help="folder of the submission (default: snapshot next to the result, else as evaluated)",
    )
    option("-p", "--problem", help="name or path of the problem (default: as evaluated, else by name)")
    add_problems_dir(parser, first="as evaluated, else ")
    add_environment(parser, "as evaluated")
    option("-o", "--output", metavar="OUT", type=Path, help="folder for the new evaluation.json and raw reports")
    add_json(parser, "print the differences as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.evaluation.result_files.test_lookup import one_test
    from slop_code.reporting.rerun_lines import show_changes
    from slop_code.runs.folders.result_folders import result_at
    from slop_code.runs.scb.load_result import is_scb, load_result
    from slop_code.verification.rerun_changes import rerun_changes

    path = result_at(arguments.result)
    stored = load_result(path)
    if is_scb(stored):
        raise UsageError(
            f"{path}: evaluated by the SlopCodeBench runner, so its inputs are not recorded; evaluate its run into "
            "another folder, slop-code eval RUN_DIR -o OUT, and compare both: slop-code compare RUN_DIR OUT"
        )
    test = None if arguments.test is None else one_test(stored, arguments.test, arguments.result)
    if test is not None and arguments.output is not None:
        raise UsageError("-o cannot be used with TEST: a test is no result of a checkpoint")
    evaluation = _evaluate(stored, path.parent, test, arguments)
    again = evaluation.results
    changes = rerun_changes(stored, again, test)
    with closed_pipe_ignored():
        if arguments.json:
            _print_json(changes, again)
        else:
            show_changes(changes, stored, again, test)
        if arguments.output is not None:
            print_stored(arguments.output / "evaluation.json", evaluation, quiet=arguments.json)
    if again.infrastructure_failure:
        return Exit.INFRASTRUCTURE
    return Exit.NOT_PASSED if changes.differ else Exit.PASSED


def _evaluate(
    stored: CorrectnessResults, folder: Path, test: TestResult | None, arguments: argparse.Namespace
) -> StoredEvaluation:
    from slop_code.cli.signals import cancelled_by_signals
    from slop_code.evaluation.result_files.stored_evaluation import StoredEvaluation
    from slop_code.reporting.progress.evaluation_progress import evaluation_status
    from slop_code.reporting.terminal import LiveOutput
    from slop_code.verification.rerun import RerunInputs, evaluate_again, run_single_test, submission_of

    given = RerunInputs(
        arguments.snapshot, arguments.problem, arguments.problems_dir, arguments.environment, arguments.output
    )
    submission = submission_of(stored, folder, given)
    live = LiveOutput(BestEffortStream(sys.stderr if arguments.json else sys.stdout))
    with cancelled_by_signals():
        if test is None:
            with evaluation_status(quiet=arguments.quiet, verbose=arguments.verbose) as status:
                return evaluate_again(stored, folder, submission, status)
        return StoredEvaluation(run_single_test(test, folder, submission, print_progress, live))


def _print_json(changes: RerunChanges, again: CorrectnessResults) -> None:
    document = {
        "same": not changes.differ,
        "flaky": changes.flaky,
        "same_inputs": changes.same_inputs,
        **asdict(changes, dict_factory=_json_object),
    }
    print_json({**document, "results": again.model_dump(mode="json")})


def _json_object(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {JSON_KEYS.get(name, name): value for name, value in fields}
