"""`slop-code problems run`: run a problem's tests against its reference."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._suggestions import first_names
from slop_code.cli.exit_codes import EXIT_HELP, Exit, exit_for
from slop_code.cli.messages import print_progress
from slop_code.cli.shared_options import add_environment, add_json, add_problems_dir, whole_number
from slop_code.errors import SlopCodeError, UsageError
from slop_code.evaluation.policy import PassPolicy
from slop_code.evaluation.problem.problem_lookup import find_problem

if TYPE_CHECKING:
    import argparse

    from slop_code.authoring.run_loop import RunOptions
    from slop_code.cli.shared_options import Commands
    from slop_code.evaluation.config import ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults

NO_SHORT_SUMMARY = ("-rN",)
"""For pytest, whose short summary would name each failure once more."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "run",
        examples=["slop-code problems run problems/larder", "slop-code problems run larder -c 1 -k add --watch"],
        verbose="show pytest's own output, live, with every failure in full",
        help="run a problem's tests against its reference",
        description="Run a problem's tests against its reference, in the boxes of an evaluation, and show why tests "
        "failed. -v, --pdb and --pytest-arg show pytest's own output instead, live.",
        epilog=EXIT_HELP,
    )
    option = parser.add_argument
    option("problem", nargs="?", default=".", metavar="PROBLEM", help="name or path of the problem (default: .)")
    option("-c", "--checkpoint", help="number or name of the checkpoint (default: the last)")
    option("--solution", type=Path, metavar="DIR", help="what is tested (default: solutions/CHECKPOINT)")
    option("-k", dest="keyword", metavar="EXPRESSION", help="run only the tests that match, as pytest's -k")
    option("--pytest-arg", action="append", default=[], metavar="ARG", help="another argument for pytest; repeatable")
    option("--watch", action="store_true", help="run again whenever a file of the problem or the solution changes")
    option("--pdb", action="store_true", help="open pytest's debugger where a test fails, or calls breakpoint()")
    add_environment(parser)
    option(
        "--seed",
        type=int,
        metavar="N",
        help="run the tests in the random order that this number decides; 0: in reverse",
    )
    option("--busy", action="store_true", help="keep every processor busy meanwhile")
    option(
        "--parallel",
        type=whole_number(1, 1000),
        default=1,
        metavar="N",
        help="run the tests in N pairs of boxes at a time",
    )
    add_problems_dir(parser)
    add_json(parser, "print evaluation.json in the end, and any output of pytest to standard error")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.authoring.run_loop import RunOptions

    if arguments.pdb and arguments.parallel > 1:
        raise UsageError("--pdb cannot be used with --parallel: one debugger reads one input")
    if arguments.parallel > 1 and (arguments.keyword or arguments.pytest_arg):
        raise UsageError("--parallel cannot be used with -k or --pytest-arg: these are for one pytest")
    if arguments.json and (arguments.watch or arguments.pdb):
        raise UsageError("--json cannot be used with --watch or --pdb, which end when you end them")
    keyword = ["-k", arguments.keyword] if arguments.keyword else []
    options = RunOptions(
        checkpoint=arguments.checkpoint,
        solution=arguments.solution,
        environment=arguments.environment,
        pytest_args=[*keyword, *(NO_SHORT_SUMMARY if _shows_pytest(arguments) else ()), *arguments.pytest_arg],
        seed=arguments.seed,
        busy=arguments.busy,
        pairs=arguments.parallel,
        interactive=arguments.pdb,
    )
    if arguments.watch:
        _watch(options, arguments)
    problem = find_problem(arguments.problem, arguments.problems_dir)
    results = _run(problem, options, arguments)
    if arguments.json:
        print(results.model_dump_json(indent=2), flush=True)
        return exit_for(results, PassPolicy.ALL_CASES)
    return _show(results, problem, options, arguments)


def _shows_pytest(arguments: argparse.Namespace) -> bool:
    """True if pytest's own output is shown: it has all failures, so they are not listed again."""
    return bool(arguments.verbose or arguments.pdb or arguments.pytest_arg)


def _run(problem: ProblemConfig, options: RunOptions, arguments: argparse.Namespace) -> CorrectnessResults:
    from slop_code._io import BestEffortStream
    from slop_code.authoring.run_loop import run_solution
    from slop_code.reporting.progress.evaluation_progress import evaluation_status
    from slop_code.reporting.terminal import MAX_CHARACTERS, LiveOutput

    if not _shows_pytest(arguments):
        with evaluation_status(quiet=arguments.quiet) as status:
            return run_solution(problem, options, status)
    stream = BestEffortStream(sys.stderr if arguments.json else sys.stdout)
    live = LiveOutput(stream, limit=sys.maxsize if options.interactive else MAX_CHARACTERS)
    return run_solution(problem, options, print_progress, live)


def _show(
    results: CorrectnessResults, problem: ProblemConfig, options: RunOptions, arguments: argparse.Namespace
) -> Exit:
    from slop_code._safe_text import decoded_name
    from slop_code.authoring.run_loop import debugger_was_left
    from slop_code.evaluation.staging import PERMANENT_EXITS
    from slop_code.reporting.result_lines import show_after_pytest, show_result
    from slop_code.reporting.text import shell_word

    if _shows_pytest(arguments):
        print(flush=True)
    if debugger_was_left(results, options):
        print("the debugger was left before the end of the tests: no verdict", flush=True)
        return Exit.NOT_PASSED
    if _shows_pytest(arguments):
        show_after_pytest(results, PassPolicy.ALL_CASES)
    else:
        show_result(results, PassPolicy.ALL_CASES, "failures in full: -v")
    if results.infrastructure_failure and not results.tests and results.pytest_exit_code in PERMANENT_EXITS:
        folder = shell_word(decoded_name(os.path.relpath(problem.path)))
        print(f"next: slop-code problems check {folder} --step layout", flush=True)
    return exit_for(results, PassPolicy.ALL_CASES)


def _watch(options: RunOptions, arguments: argparse.Namespace) -> None:
    """Runs until it is interrupted. Errors of the problem are printed, and the next change may fix them."""
    from slop_code.authoring.run_loop import file_states, solution_of, wait_for_change
    from slop_code.reporting.rerun_lines import print_changes

    folders, last = [find_problem(arguments.problem, arguments.problems_dir).path], None
    while True:
        states = file_states(folders)
        try:
            problem = find_problem(arguments.problem, arguments.problems_dir)
            folders = list(dict.fromkeys([problem.path, solution_of(problem, options)]))
            states = file_states(folders)
            results = _run(problem, options, arguments)
            _show(results, problem, options, arguments)
            if last is not None:
                print_changes(last, results)
            if not results.infrastructure_failure:
                last = results
        except SlopCodeError as error:
            _print_line(f"slop-code: {error}")
        _print_line("waiting for a change; Ctrl-C ends")
        changed = wait_for_change(folders, states)
        _print_line(f"changed: {first_names([os.path.relpath(path) for path in changed], 1)}")


def _print_line(line: str) -> None:
    from slop_code.reporting.text import printable

    print(printable(line), flush=True)
