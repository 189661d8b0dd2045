"""`slop-code rerun`: a stored result once more, or one test of it, and what differs."""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._io import Forgiving
from slop_code.cli.exit_codes import Exit
from slop_code.cli.shared_options import make_folder, print_progress, tell_written
from slop_code.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.shared_options import Commands
    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.verification.rerun_changes import RerunChanges

STATUS = (
    "Exit status: 0 the same statuses and verdicts, 1 something differs, 2 wrong use or configuration, "
    "3 infrastructure failure, 130 interrupted."
)


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "rerun",
        help="evaluate a stored result again, or one test of it, and say what differs",
        description="Evaluate a stored result again, or one test of it, and say what differs. Nothing stored changes.",
        epilog=STATUS,
        allow_abbrev=False,
    )
    option = parser.add_argument
    option("result", metavar="RESULT", type=Path, help="an evaluation.json, or the folder that holds it")
    option(
        "test",
        nargs="?",
        metavar="TEST",
        help="directly after RESULT: run this one alone, by file::id, the id, or a part no other test has",
    )
    option(
        "--snapshot",
        metavar="DIR",
        type=Path,
        help="the submission (default: snapshot beside the result, else as evaluated)",
    )
    option("-p", "--problem", help="name or path of the problem (default: as evaluated, else by name)")
    option("--problems-dir", type=Path, help="where to find problems by name")
    option("-e", "--environment", help="name or path of the environment (default: as evaluated)")
    option("-o", "--output", metavar="OUT", type=Path, help="folder for the new evaluation.json and raw reports")
    option("--json", action="store_true", help="print what differs as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.evaluation.test_lookup import one_test
    from slop_code.reporting.rerun_lines import show
    from slop_code.runs.read_results import result_at
    from slop_code.verification.rerun_changes import rerun_changes

    path = result_at(arguments.result)
    stored = CorrectnessResults.load(path)
    test = None if arguments.test is None else one_test(stored, arguments.test, arguments.result)
    if test is not None and arguments.output is not None:
        raise UsageError("-o cannot be used with TEST: one test is no result of a checkpoint")
    again = _evaluate(stored, path.parent, test, arguments)
    found = rerun_changes(stored, again, test)
    with contextlib.suppress(BrokenPipeError):  # who has seen enough still gets the exit status
        if arguments.json:
            _print_json(found, again)
        else:
            show(found, stored, again, test)
            if arguments.output is not None:
                tell_written(arguments.output / "evaluation.json")
    if again.infrastructure_failure:
        return Exit.INFRASTRUCTURE
    return Exit.NOT_PASSED if found.differ else Exit.PASSED


def _evaluate(
    stored: CorrectnessResults, folder: Path, test: TestResult | None, arguments: argparse.Namespace
) -> CorrectnessResults:
    from slop_code.reporting.rerun_lines import Live
    from slop_code.verification.rerun import evaluate_again, run_one, submission_of

    submission = submission_of(
        stored,
        folder,
        snapshot=arguments.snapshot,
        problem=arguments.problem,
        problems_dir=arguments.problems_dir,
        environment=arguments.environment,
        output=arguments.output,
    )
    if arguments.output is not None:
        make_folder(arguments.output)
    if test is None:
        return evaluate_again(stored, folder, submission, print_progress)
    live = Live(Forgiving(sys.stderr if arguments.json else sys.stdout))
    return run_one(test, folder, submission, print_progress, live)


def _print_json(found: RerunChanges, again: CorrectnessResults) -> None:
    told = {"same": not found.differ, "flaky": found.flaky, "same_inputs": found.same_inputs, **asdict(found)}
    print(json.dumps({**told, "results": again.model_dump(mode="json")}, indent=2), flush=True)
