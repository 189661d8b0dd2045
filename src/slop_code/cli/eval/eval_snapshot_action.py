"""Evaluation of one snapshot, for `slop-code eval-snapshot`."""

from __future__ import annotations

import importlib
import shlex
import sys
import threading
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit, exit_for, final_status
from slop_code.cli.messages import closed_pipe_ignored, print_json, print_step, print_stored
from slop_code.cli.shared_options import selection_words
from slop_code.cli.signals import cancelled_by_signals
from slop_code.errors import InfrastructureError
from slop_code.evaluation.command import check_pytest_args
from slop_code.evaluation.context import EvaluationContext
from slop_code.evaluation.problem.problem_lookup import environment_word, find_problem
from slop_code.evaluation.pytest_runner import PytestRunner
from slop_code.evaluation.report import RESULT_FILE
from slop_code.evaluation.result_files.last_result import keep_last_result
from slop_code.evaluation.result_files.stored_evaluation import NotStoredError, evaluate_and_store
from slop_code.execution.environment import load_environment
from slop_code.execution.progress_events import ProgressKind
from slop_code.reporting.progress.evaluation_progress import evaluation_status
from slop_code.reporting.text import one_line

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.result_files.stored_evaluation import StoredEvaluation
    from slop_code.execution.progress_events import ProgressEvent

FOREIGN_STEP = "give another folder with -o, or --replace to rename it and go on"


def evaluate_snapshot(arguments: argparse.Namespace) -> int:
    problem = find_problem(arguments.problem, arguments.problems_dir)
    environment = environment_word(problem, arguments.environment)
    status = evaluation_status(quiet=arguments.quiet, verbose=arguments.verbose)

    def progress(event: ProgressEvent) -> None:
        if event.kind is ProgressKind.RUN_TESTS and not arguments.json:
            _import_result_lines()
        status(event)

    runner = PytestRunner(
        problem,
        problem.checkpoint(arguments.checkpoint),
        load_environment(environment),
        arguments.snapshot,
        output_dir=arguments.output,
        progress=progress,
    )
    further = check_pytest_args([*selection_words(arguments), *arguments.pytest_arg])
    if arguments.print_command:
        command = runner.command_by_hand(further)
        if arguments.json:
            print_json({"command": command})
        else:
            print(shlex.join(command))
        return Exit.PASSED
    context = EvaluationContext(problem, runner.checkpoint, runner.environment, runner.cache)
    if context.missing_entry_file(arguments.snapshot) is not None:
        _warn_of_other_kind(arguments.snapshot)
    policy: Policy = arguments.pass_policy
    try:
        with cancelled_by_signals(), status:
            step = None if arguments.replace else FOREIGN_STEP
            evaluation = evaluate_and_store(runner, further, environment, foreign_step=step)
    except NotStoredError as error:
        if error.results is None or not keep_last_result(error.results, runner, environment):
            raise
        step = "it is kept as the last result, which `slop-code show` prints"
        raise InfrastructureError(f"{error}; {step}") from error
    kept = arguments.output is None and keep_last_result(evaluation.results, runner, environment)
    with closed_pipe_ignored():
        _print(evaluation, policy, arguments, kept=kept)
        if arguments.output is None and not arguments.quiet:
            sys.stdout.flush()  # the result comes first, also where both streams are the same file
            shown = "; slop-code show shows this result until the next one" if kept else ""
            print_step(f"nothing is stored without -o OUT{shown}")
    return final_status(exit_for(evaluation.results, policy), arguments)


def _warn_of_other_kind(snapshot: Path) -> None:
    """Only a warning: a submission may look like a run, and has its verdict all the same."""
    from slop_code.runs.folders.folder_kind import folder_advice

    if advice := folder_advice(snapshot):
        print_step(one_line(f"warning: {snapshot}: evaluated as a submission{advice}"))


def _print(evaluation: StoredEvaluation, policy: Policy, arguments: argparse.Namespace, *, kept: bool) -> None:
    if arguments.json:
        print(evaluation.results.model_dump_json(indent=2), flush=True)
    else:
        from slop_code.reporting.result_lines import show_hint, show_result

        hint = show_hint(arguments.output) if kept or arguments.output else "failures in full: -v"
        show_result(evaluation.results, policy, hint, verbose=arguments.verbose)
    if arguments.output is not None:
        print_stored(arguments.output / RESULT_FILE, evaluation, quiet=arguments.json)


def _import_result_lines() -> None:
    """Tests begin: from here on this process only waits, which is time to import what prints the result."""
    threading.Thread(target=importlib.import_module, args=("slop_code.reporting.result_lines",), daemon=True).start()
