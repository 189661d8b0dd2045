"""`slop-code regrade`: stored runs against changed problems, with the changes of each test."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import closed_pipe_ignored, print_json, print_step
from slop_code.cli.shared_options import (
    add_environment,
    add_json,
    add_live_progress,
    add_output,
    add_problem_names,
    add_problems_dir,
    add_retries,
    add_snapshot_dir,
    add_workers,
    merge_command,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from slop_code.cli.shared_options import Commands
    from slop_code.runs.run_evaluation import RunEvaluation
    from slop_code.verification.regrade.regrade_record import RegradeRecord
    from slop_code.verification.regrade.regrade_runs import PlannedCheckpoint

EXIT_HELP = (
    "Exit status: 0 regraded, and every test and verdict counts as before, 1 something counts differently, "
    "2 wrong use or configuration, 3 a checkpoint could not be regraded and keeps its earlier result, "
    "130 interrupted."
)


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "regrade",
        help="evaluate runs again after their problems changed, and keep the earlier results",
        description="Evaluate stored runs against changed problems, keep the earlier results under a label, and say "
        "for each test what changed and why. Where only groups, markers or versions changed in config.yaml, results "
        "are graded again from their evidence, and nothing runs.",
        epilog=EXIT_HELP,
        examples=[
            "slop-code regrade runs/today --problems-dir problems-v2 --dry-run",
            "slop-code regrade runs/today --problems-dir problems-v2 --label v1",
        ],
    )
    option = parser.add_argument
    option("runs", nargs="+", type=Path, metavar="RUN_DIR", help="folder of an evaluated run")
    option(
        "--label",
        metavar="NAME",
        help="name for the earlier results (default: the time, or that of an interrupted regrade)",
    )
    add_problem_names(parser)
    add_output(parser, "folder of the results, where slop-code eval had -o OUT")
    add_snapshot_dir(parser)
    add_problems_dir(parser, second="else as in the last evaluation, ")
    add_environment(parser, "environment.yaml of the run or the problem, else local")
    add_workers(parser)
    add_retries(parser)
    option("--dry-run", action="store_true", help="show what would be graded or evaluated again and why, and exit")
    add_json(parser, "print the changes as JSON")
    add_live_progress(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.cli.eval.eval_actions import check_runs, discover_given
    from slop_code.evaluation.policy import PassPolicy
    from slop_code.execution.cache import Cache
    from slop_code.runs.jobs.run_control import Retries
    from slop_code.runs.run_evaluation import RunSettings, open_runs
    from slop_code.verification.regrade.earlier_results import check_label
    from slop_code.verification.regrade.regrade_runs import plan_regrade

    if arguments.label is not None:
        check_label(arguments.label)
    arguments.pass_policy = PassPolicy.ALL_CASES
    runs = discover_given(arguments, arguments.problem, arguments.output)
    check_runs(runs, arguments)
    settings = RunSettings(
        workers=arguments.num_workers,
        retries=Retries(times=arguments.retries),
        partial=bool(arguments.problem),
        foreign_step="evaluate the run with slop-code eval -o OUT first, and regrade with the same -o OUT",
    )
    with open_runs(runs, Cache.default(), settings, lock=not arguments.dry_run) as evaluation:
        planned = plan_regrade(evaluation)
        if arguments.dry_run:
            return _print_plan(evaluation, planned, as_json=arguments.json)
        return _regrade(evaluation, planned, arguments)


def _regrade(evaluation: RunEvaluation, planned: Sequence[PlannedCheckpoint], arguments: argparse.Namespace) -> int:
    from slop_code.cli.job_progress import run_with_progress
    from slop_code.runs.jobs.run_control import RunControl
    from slop_code.verification.regrade.earlier_results import label_for
    from slop_code.verification.regrade.regrade_runs import finish_record, grade_planned, keep_earlier

    labels = {run.name: label_for(run.folder, arguments.label) for run in evaluation.runs if run.folder}
    kept = keep_earlier(evaluation, planned, labels)
    evaluation, control = grade_planned(evaluation, planned), RunControl()
    try:
        if evaluation.plan.jobs:
            run_with_progress(evaluation, control, arguments)
    except KeyboardInterrupt:  # before the first job, or after the control was stopped
        control.stop()
    evaluation.conclude()
    records = {
        run.name: finish_record(run, evaluation, kept[run.name], planned) for run in evaluation.runs if run.name in kept
    }
    if control.finishing:
        with contextlib.suppress(OSError):  # the terminal may be gone
            print_step("interrupted: earlier results count where none has replaced them; the same command goes on")
        return Exit.INTERRUPTED
    evaluation.remember_origins(arguments.environment)
    _show(records, {name: str(earlier.folder) for name, earlier in kept.items()}, arguments)
    if evaluation.plan.issues or any(record.failed for record in records.values()):
        return Exit.INFRASTRUCTURE
    return Exit.NOT_PASSED if any(record.differs for record in records.values()) else Exit.PASSED


def _show(records: Mapping[str, RegradeRecord], folders: Mapping[str, str], arguments: argparse.Namespace) -> None:
    from slop_code.reporting.regrade_lines import regrade_lines
    from slop_code.reporting.terminal import ResultConsole, print_lines

    with closed_pipe_ignored():
        if arguments.json:
            documents = {name: record.model_dump(mode="json") for name, record in records.items()}
            print_json({"runs": [{"run": name, "earlier": folders[name], **documents[name]} for name in documents]})
            return
        console = ResultConsole()
        for name, record in records.items():
            print_lines(console, regrade_lines(name, record))
        if not records:
            print("nothing to regrade: every result is up to date with its problem")
        for folder in folders.values():
            print_step(f"earlier results: {shlex.quote(folder)}; compare, show and report read them as a run")
        if arguments.problem:
            step = f"`{merge_command(arguments)}` writes that of the whole run"
            print_step(f"no summary was written, as only a part was regraded; {step}")


def _print_plan(evaluation: RunEvaluation, planned: Sequence[PlannedCheckpoint], *, as_json: bool) -> int:
    from slop_code.reporting.regrade_lines import regrade_plan_lines
    from slop_code.reporting.terminal import ResultConsole, print_lines

    issues = evaluation.plan.issues
    if as_json:
        rows = [{"label": each.submission.label, "outcome": each.outcome, "reason": each.reason} for each in planned]
        print_json({"checkpoints": rows, "issues": [{"label": each.label, "reason": each.reason} for each in issues]})
    else:
        print_lines(ResultConsole(), regrade_plan_lines(planned, issues))
    return Exit.INFRASTRUCTURE if issues else Exit.PASSED
