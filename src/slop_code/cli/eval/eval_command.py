"""Commands `slop-code eval`, `eval-problem` and `merge`, and their options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import EVAL_EXIT_HELP, EXIT_HELP, final_status
from slop_code.cli.shared_options import (
    add_environment,
    add_executor,
    add_exit_zero,
    add_json,
    add_live_progress,
    add_output,
    add_policy,
    add_problem_names,
    add_problems_dir,
    add_replace,
    add_retries,
    add_selection,
    add_snapshot_dir,
    add_workers,
    parsed_policy,
    whole_number,
)
from slop_code.errors import UsageError
from slop_code.runs.layout_names import LAYOUT

if TYPE_CHECKING:
    import argparse

    from slop_code.cli.shared_options import Commands

SETTLE_S = 2


def add_to(commands: Commands) -> None:
    _add_eval(commands)
    _add_eval_problem(commands)
    _add_merge(commands)


def _add_eval(commands: Commands) -> None:
    parser = commands.add_parser(
        "eval",
        help="evaluate whole runs",
        description=f"Evaluate every {LAYOUT} of one or more runs. Results that are up to date are kept.",
        epilog=EVAL_EXIT_HELP,
        examples=[
            "slop-code eval agent/1 agent/2 agent/3 --samples -e local -j 8",
            "slop-code eval runs/today --follow --stop-at core -o results --report report.html",
        ],
    )
    option = parser.add_argument
    option("runs", nargs="+", type=Path, metavar="RUN_DIR", help=f"folder with {LAYOUT}")
    add_problem_names(parser)
    option(
        "--samples",
        action="store_true",
        help="the runs are samples of the same agent: estimate pass@k and confidence intervals over them",
    )
    add_selection(parser)
    _add_following(parser)
    _add_execution(parser)
    _add_grading(parser)
    _add_results(parser, "folder for all results, in the layout of the runs, which stay as they are")
    add_exit_zero(parser)
    parser.set_defaults(run=run_eval)


def _add_following(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument
    option("--follow", action="store_true", help="evaluate each snapshot of a run that an agent still works on")
    option(
        "--stop-at",
        type=parsed_policy,
        metavar="POLICY",
        help="with --follow: at the first checkpoint to finish without reaching this policy, write stop.json and end",
    )
    option(
        "--settle",
        type=whole_number(1, 3600),
        default=SETTLE_S,
        metavar="SECONDS",
        help=f"with --follow: a snapshot is complete when it has not changed for this time (default: {SETTLE_S})",
    )


def _add_eval_problem(commands: Commands) -> None:
    parser = commands.add_parser(
        "eval-problem",
        help="evaluate the checkpoints of a problem",
        description="Evaluate every <checkpoint>/snapshot of a problem.",
        epilog=EXIT_HELP,
        examples=["slop-code eval-problem runs/today/larder", "slop-code eval-problem work -p larder --dry-run"],
    )
    option = parser.add_argument
    option("folder", type=Path, metavar="DIR", help="folder with <checkpoint>/snapshot")
    option("-p", "--problem", "--problem-name", help="name or path of the problem (default: the folder's name)")
    add_selection(parser)
    _add_execution(parser)
    _add_grading(parser)
    _add_results(parser, "folder for all results, as <problem>/<checkpoint>; the given folder stays as it is")
    add_exit_zero(parser)
    parser.set_defaults(run=run_eval_problem, samples=False)


def _add_merge(commands: Commands) -> None:
    parser = commands.add_parser(
        "merge",
        help="merge the results of shards",
        description="Copy results from other folders of the same run, check that every checkpoint has an up-to-date "
        "result, and write the summary. Nothing is evaluated.",
        epilog=EXIT_HELP,
        examples=["slop-code merge runs/today", "slop-code merge runs/today shards/1 shards/2"],
    )
    option = parser.add_argument
    option("folder", type=Path, metavar="RUN_DIR", help=f"folder of the run, with {LAYOUT}")
    option(
        "copies", nargs="*", type=Path, metavar="COPY", help="another folder of the same run, with results of shards"
    )
    _add_grading(parser)
    _add_results(parser, "folder for all results, as with -o of eval; the run stays as it is")
    parser.set_defaults(run=run_merge, samples=False)


def _add_grading(parser: argparse.ArgumentParser) -> None:
    add_environment(parser, "environment.yaml of the run or the problem, else local")
    add_policy(parser)
    add_problems_dir(parser, second="else as in the last evaluation, ")
    add_json(parser, "print summary.json instead of a table")


def _add_results(parser: argparse.ArgumentParser, output_help: str) -> None:
    add_output(parser, output_help)
    add_replace(parser)
    add_snapshot_dir(parser)


def _add_execution(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument
    add_workers(parser)
    option("--overwrite", action="store_true", help="evaluate again, even where a result is up to date or cached")
    option("--metrics", action="store_true", help="measure code quality after the verdicts; see slop-code metrics")
    option("--report", type=Path, metavar="FILE", help="HTML report, kept current while the evaluation goes on")
    option("--dry-run", action="store_true", help="show what would be evaluated and why, and exit")
    add_retries(parser)
    option("--shard", metavar="I/N", help="evaluate only every N-th job, starting with the I-th; then use merge")
    add_executor(parser)
    add_live_progress(parser)


def run_eval(arguments: argparse.Namespace) -> int:
    if arguments.follow:
        from slop_code.cli.eval.follow_action import follow

        return final_status(follow(arguments), arguments)
    from slop_code.cli.eval.eval_actions import evaluate

    if arguments.stop_at is not None:
        raise UsageError("--stop-at needs --follow; add it, or leave --stop-at out")
    return final_status(evaluate(arguments), arguments)


def run_eval_problem(arguments: argparse.Namespace) -> int:
    from slop_code.cli.eval.eval_actions import evaluate_problem

    return final_status(evaluate_problem(arguments), arguments)


def run_merge(arguments: argparse.Namespace) -> int:
    from slop_code.cli.eval.eval_actions import merge

    return merge(arguments)
