"""Actions of `slop-code eval`, `eval-problem` and `merge`: they evaluate runs and print summaries."""

from __future__ import annotations

import contextlib
import functools
import shlex
import sys
from typing import TYPE_CHECKING

from slop_code._suggestions import first_names
from slop_code.cli.eval.live_report import check_report, kept_report
from slop_code.cli.exit_codes import Exit
from slop_code.cli.job_progress import run_with_progress
from slop_code.cli.messages import closed_pipe_ignored, print_json, print_step, unreadable_status
from slop_code.cli.metrics_command import measure_evaluated
from slop_code.cli.shared_options import merge_command, selection_words
from slop_code.errors import UsageError
from slop_code.evaluation.command import check_pytest_args
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.problem.problem_lookup import find_problem, named_problems_folder, problems_folders
from slop_code.evaluation.result_files.origin import remembered_problem
from slop_code.execution.cache import Cache
from slop_code.execution.environment import load_environment
from slop_code.execution.processors import available_cpus
from slop_code.reporting.text import one_line
from slop_code.runs.discover import discover, discover_problem, empty_run_reason, vanished_problem_reason
from slop_code.runs.executors import is_remote
from slop_code.runs.folders.folder_kind import check_problem_of_run
from slop_code.runs.folders.foreign_guard import has_only_results
from slop_code.runs.folders.result_folders import result_files
from slop_code.runs.jobs.plan import Shard
from slop_code.runs.jobs.run_control import Retries, RunControl
from slop_code.runs.merge import merge_copies
from slop_code.runs.run_evaluation import RunSettings, open_runs
from slop_code.runs.run_layout import check_folder

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from slop_code.evaluation.policy import Policy
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.reporting.html.live_page import ReadResults
    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.jobs.plan import Plan
    from slop_code.runs.read_results import RunResults
    from slop_code.runs.run_evaluation import RunEvaluation
    from slop_code.runs.summary import RunSummary

MIN_SLOW_DIGESTS = 100
"""Submissions whose digests take a while to compute."""


def evaluate(arguments: argparse.Namespace) -> int:
    runs = discover_given(arguments, arguments.problem, _mirror(arguments))
    status = _evaluate(runs, arguments, partial=bool(arguments.problem))
    if arguments.problem and not (arguments.dry_run or arguments.shard or selection_words(arguments)):
        step = f"`{merge_command(arguments)}` writes that of the whole run"
        print_step(f"no summary was written, as only a part was evaluated; {step}")
    return status


def given_environment(arguments: argparse.Namespace) -> EnvironmentSpec | None:
    return None if arguments.environment is None else load_environment(arguments.environment)


def discover_given(arguments: argparse.Namespace, problems: Sequence[str], output: Path | None) -> list[DiscoveredRun]:
    """The runs of the command, with these problems alone where there are any. `output`: that of a mirrored tree."""
    return discover(
        arguments.runs,
        problems_dir=arguments.problems_dir,
        environment=given_environment(arguments),
        only=problems,
        output=output,
        snapshot_dir=arguments.snapshot_dir,
    )


def _mirror(arguments: argparse.Namespace) -> Path | None:
    """The folder of the mirrored tree; the results of a part of the tests have a layout of their own."""
    return None if selection_words(arguments) else arguments.output


def evaluate_problem(arguments: argparse.Namespace) -> int:
    spec = given_environment(arguments)
    check_folder(arguments.folder)
    check_problem_of_run(arguments.folder, arguments.snapshot_dir)
    problem = _problem_of(arguments)
    run = discover_problem(
        arguments.folder, problem, spec, output=_mirror(arguments), snapshot_dir=arguments.snapshot_dir
    )
    return _evaluate([run], arguments)


def _problem_of(arguments: argparse.Namespace) -> ProblemConfig:
    """The problem that the user named, else that of the last evaluation, else the one with the folder's name."""
    folder = arguments.folder.resolve()
    if arguments.problem is None and named_problems_folder(arguments.problems_dir) is None:
        known = remembered_problem(folder, folder.parent, arguments.output)
        if known is not None:
            if not known.is_dir():
                raise UsageError(f"{arguments.folder}: {vanished_problem_reason(known)} or -p")
            return ProblemConfig.from_yaml(known)
    return find_problem(arguments.problem or folder.name, arguments.problems_dir)


def merge(arguments: argparse.Namespace) -> int:
    spec = given_environment(arguments)
    runs = discover(
        [arguments.folder],
        problems_dir=arguments.problems_dir,
        environment=spec,
        output=arguments.output,
        snapshot_dir=arguments.snapshot_dir,
    )
    _refuse_empty_runs(runs)
    settings = RunSettings(foreign_step=foreign_step(arguments))
    with open_runs(
        runs, Cache.default(), settings, before_plan=lambda run: merge_copies(run, arguments.copies)
    ) as evaluation:
        if arguments.output is not None:
            evaluation.remember_origins(arguments.environment)
        return conclude(evaluation, arguments)


def _evaluate(runs: Sequence[DiscoveredRun], arguments: argparse.Namespace, *, partial: bool = False) -> int:
    check_runs(runs, arguments)
    settings = run_settings(arguments, partial=partial)
    check_report(arguments)
    if words := check_pytest_args(selection_words(arguments)):
        if arguments.metrics:
            raise UsageError("--metrics cannot be used with a selection of tests; use slop-code metrics")
        from slop_code.cli.eval.part_evaluation import evaluate_part

        return evaluate_part(runs, settings, words, arguments)
    if (count := sum(len(run.submissions) for run in runs)) >= MIN_SLOW_DIGESTS:
        print_step(f"checking {count} submissions")
    with open_runs(runs, Cache.default(), settings, lock=not arguments.dry_run) as evaluation:
        damaged = [reason for index in evaluation.indexes.values() for reason in index.unreadable.values()]
        unreadable = unreadable_status(damaged)  # they are evaluated again, or have no verdict in the end
        if arguments.dry_run:
            return _print_plan(evaluation, arguments) or unreadable
        evaluation.remember_origins(arguments.environment)
        with kept_report(arguments) as show:
            return _run(evaluation, arguments, show)


def _run(evaluation: RunEvaluation, arguments: argparse.Namespace, show: Callable[[ReadResults], None]) -> int:
    """For `show` see `kept_report`."""
    control, so_far = RunControl(), functools.partial(_results_so_far, evaluation)
    show(so_far)
    try:
        if evaluation.plan.jobs:
            run_with_progress(evaluation, control, arguments, lambda _: show(so_far), lambda: show(so_far))
        elif evaluation.plan.up_to_date and not arguments.quiet:
            print_step(f"nothing to do: {len(evaluation.plan.up_to_date)} up to date")
    except KeyboardInterrupt:  # before the first job, or after the control was stopped
        control.stop()
    status = conclude(evaluation, arguments, quiet=control.stopped)
    show(functools.partial(_stored_results, evaluation))
    if not control.finishing:
        if arguments.metrics:
            measure_evaluated(evaluation.plan, arguments)
        return status
    with contextlib.suppress(OSError):  # the terminal may be gone
        print_step(_how_to_go_on(evaluation))
    return Exit.INTERRUPTED


def _results_so_far(evaluation: RunEvaluation) -> list[RunResults]:
    """Imports what only a report needs."""
    from slop_code.runs.results_so_far import results_so_far

    return results_so_far(evaluation)


def _stored_results(evaluation: RunEvaluation) -> list[RunResults]:
    from slop_code.runs.results_so_far import stored_results

    return stored_results(evaluation.runs)


def run_settings(arguments: argparse.Namespace, *, partial: bool) -> RunSettings:
    is_remote(arguments.executor)  # refuses executors that are not there
    return RunSettings(
        workers=arguments.num_workers,
        executor=arguments.executor,
        address=arguments.ray_address,
        retries=Retries(times=arguments.retries),
        overwrite=arguments.overwrite,
        shard=Shard.parse(arguments.shard, "--shard") if arguments.shard is not None else None,
        partial=partial,
        samples=arguments.samples,
        foreign_step=foreign_step(arguments),
        output=arguments.output,
    )


def foreign_step(arguments: argparse.Namespace) -> str | None:
    """What to do about files of other programs, or None if they are renamed."""
    if arguments.replace:
        return None
    rename = "" if getattr(arguments, "follow", False) else ", or with --replace to rename these files and go on"
    return f"evaluate with -o OUT to write all results there{rename}"


def _how_to_go_on(evaluation: RunEvaluation) -> str:
    targets = [target.key for job in evaluation.plan.jobs for target in job.targets]
    left = sum(key not in evaluation.facts for key in targets)
    if not left:
        return "interrupted after the last submission; nothing is left to do"
    state = f"interrupted: {left} of {len(targets)} submissions are left and keep any earlier result"
    if not evaluation.settings.overwrite:
        return f"{state}; the same command goes on"
    rest = "without --overwrite, it evaluates only those that have no up-to-date result"
    return f"{state}; the same command evaluates all {len(targets)} again; {rest}"


def _print_remembered(runs: Sequence[DiscoveredRun], arguments: argparse.Namespace) -> None:
    """Names the folders of problems that the user did not name, and that are not the default."""
    if named_problems_folder(arguments.problems_dir) or isinstance(arguments.problem, str):  # -p of eval-problem
        return
    used = {submission.problem.path.absolute().parent for run in runs for submission in run.submissions}
    *searched, default = [folder.absolute() for folder in problems_folders(None)]
    known = sorted(str(folder) for folder in used.intersection(searched))
    other = sorted(str(folder) for folder in used.difference(searched, [default]))
    for origin, folders in (("", known), (" as in the last evaluation", other)):
        if folders:
            print_step(f"problems{origin}: {', '.join(folders)}; --problems-dir names another folder")


def _print_warnings(runs: Sequence[DiscoveredRun]) -> None:
    for warning in dict.fromkeys(warning for run in runs for warning in run.warnings):
        print_step(f"warning: {one_line(warning)}")


def check_runs(runs: Sequence[DiscoveredRun], arguments: argparse.Namespace) -> None:
    """Refuses runs that cannot be evaluated at all, and prints the warnings of the others."""
    refuse_nothing_to_evaluate(runs)
    _print_remembered(runs, arguments)
    _print_warnings(runs)


def refuse_nothing_to_evaluate(runs: Sequence[DiscoveredRun]) -> None:
    _refuse_runs_without_snapshots(runs)
    _refuse_empty_runs(runs)
    _refuse_unknown_problems(runs)


def _refuse_empty_runs(runs: Sequence[DiscoveredRun]) -> None:
    for run in runs:
        if not run.submissions and not run.issues:
            raise UsageError(empty_run_reason(run))


def _refuse_unknown_problems(runs: Sequence[DiscoveredRun]) -> None:
    """With the wrong folder of problems nothing can be evaluated. Runs that have results keep them, and say so."""
    issues = [issue for run in runs for issue in run.issues]
    unknown = [issue for issue in issues if issue.unknown_problem]
    if not issues or issues != unknown or any(run.submissions for run in runs):
        return
    if not any(run.folder is not None and result_files(run.folder) for run in runs):
        names = first_names(list(dict.fromkeys(issue.problem or "" for issue in issues)), 5)
        raise UsageError(f"{names}: {issues[0].reason}")


def _refuse_runs_without_snapshots(runs: Sequence[DiscoveredRun]) -> None:
    """With several runs it is only a warning, so that the others are evaluated."""
    for run in runs:
        if has_only_results(run):
            folder = shlex.quote(str(run.input_folder))
            look = f"look at them with `slop-code report {folder}`, check them with `slop-code verify {folder}`"
            message = f"{run.input_folder}: results, but no snapshot to evaluate; its summary is left as it is; {look}"
            if len(runs) == 1:
                raise UsageError(message)
            print_step(f"warning: {one_line(message)}")


def conclude(evaluation: RunEvaluation, arguments: argparse.Namespace, *, quiet: bool = False) -> int:
    """Writes the summary and prints it, unless `quiet`; returns the exit status."""
    from slop_code.reporting.failures.checkpoint_reasons import checkpoint_reasons
    from slop_code.reporting.run_table import show_run
    from slop_code.reporting.terminal import ResultConsole

    lines, summary = evaluation.conclude(arguments.pass_policy)
    policy: Policy = arguments.pass_policy
    empty = not lines and not summary.issues
    if evaluation.settings.shard is not None and empty and not arguments.json and not quiet:
        print("nothing in this shard")
        return Exit.PASSED
    status = _status(summary, policy)
    if quiet:
        return status
    with closed_pipe_ignored():
        if arguments.json:
            print(summary.model_dump_json(indent=2), flush=True)
        else:
            outputs = {item.label: item.output for run in evaluation.runs for item in run.submissions}
            reasons = checkpoint_reasons(lines, policy, outputs)
            show_run(summary, lines, policy, ResultConsole(), reasons, is_written=evaluation.settings.whole_runs)
            sys.stdout.flush()
    if arguments.output is not None:
        print_step(f"written: {arguments.output}")
    if status != Exit.PASSED and sys.stderr.isatty() and not arguments.json:
        folders = [str(run.folder) for run in evaluation.runs if run.folder]
        print_step(f"failures in detail: slop-code report {shlex.join(folders)}")
    return status


def _status(summary: RunSummary, policy: Policy) -> Exit:
    """Passed if every planned checkpoint passed, also where none is planned: a shard may be empty."""
    checkpoints = summary.totals.checkpoints
    if summary.issues or checkpoints.not_looked_at_again or checkpoints.evaluated < checkpoints.planned:
        return Exit.INFRASTRUCTURE
    return Exit.PASSED if summary.totals.passed[policy].count == checkpoints.planned else Exit.NOT_PASSED


def _print_plan(evaluation: RunEvaluation, arguments: argparse.Namespace) -> int:
    from slop_code.reporting.plan_lines import plan_lines
    from slop_code.reporting.terminal import ResultConsole, print_lines

    plan = evaluation.plan
    if arguments.json:
        print_json(_plan_document(plan))
    else:
        print_lines(ResultConsole(), plan_lines(plan, arguments.num_workers or available_cpus()))
    return Exit.INFRASTRUCTURE if plan.issues else Exit.PASSED


def _plan_document(plan: Plan) -> dict[str, object]:
    return {
        "jobs": [
            {
                "submissions": [target.label for target in job.targets],
                "action": "store" if job.cached else "run",
                "reason": "; ".join(dict.fromkeys(plan.reasons[target.key] for target in job.targets)),
                "expected_seconds": job.expected_s,
            }
            for job in plan.jobs
        ],
        "up_to_date": [submission.label for submission, _ in plan.up_to_date],
        "issues": [{"label": issue.label, "reason": issue.reason} for issue in plan.issues],
    }
