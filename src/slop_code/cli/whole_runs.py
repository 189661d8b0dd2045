"""What `slop-code eval`, `eval-problem` and `merge` do."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import sys
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import print_progress, print_step
from slop_code.errors import UsageError
from slop_code.evaluation.origin import Origin, place_of_environment
from slop_code.evaluation.problem_lookup import find_problem, problems_folder
from slop_code.execution.cache import Cache
from slop_code.execution.concurrency import available_cpus
from slop_code.execution.environment import load_environment
from slop_code.reporting.text import one_line
from slop_code.runs.checkpoint_lines import CheckpointLine
from slop_code.runs.conclude import write_summary
from slop_code.runs.discover import discover, discover_problem, nothing_in, snapshot_around
from slop_code.runs.evaluate_run import RunSettings, only_results, open_runs
from slop_code.runs.executors import executor_class
from slop_code.runs.job_records import JobRetrying, JobStarted
from slop_code.runs.merge import merge_copies
from slop_code.runs.plan import Shard
from slop_code.runs.run_control import Retries, RunControl
from slop_code.runs.run_layout import check_folder
from slop_code.runs.summary import without_samples

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from slop_code.evaluation.policy import Policy
    from slop_code.execution.progress_events import ProgressCallback, ProgressEvent
    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.evaluate_run import RunEvaluation
    from slop_code.runs.plan import Plan
    from slop_code.runs.summary import RunSummary

MANY = 100
"""Submissions whose digests take a while."""


def evaluate(arguments: argparse.Namespace) -> int:
    spec = load_environment(arguments.environment) if arguments.environment is not None else None
    runs = discover(arguments.runs, problems_dir=arguments.problems_dir, environment=spec, only=arguments.problem)
    _check_output(arguments, runs)
    status = _evaluate(runs, arguments, partial=bool(arguments.problem))
    if arguments.problem and not arguments.dry_run and not arguments.shard:
        given = f" -e {shlex.quote(arguments.environment)}" if arguments.environment is not None else ""
        print_step(
            f"no summary was written for a part of the run: `slop-code merge RUN_DIR{given}` writes that of the whole"
        )
    return status


def _check_output(arguments: argparse.Namespace, runs: Sequence[DiscoveredRun]) -> None:
    """Before anything runs: a summary that cannot be written at the end would come too late."""
    output: Path | None = arguments.output
    if output is None:
        return
    if arguments.shard is not None:
        raise UsageError("-o cannot be used with --shard: a shard knows a part of the runs; use slop-code merge")
    if os.path.lexists(output) and not output.is_dir():
        raise UsageError(f"{output}: not a folder; give one for the summary of all runs together")
    if inside := snapshot_around(output, runs):
        raise UsageError(f"{output}: lies in the snapshot {inside}, where nothing is ever written")


def evaluate_problem(arguments: argparse.Namespace) -> int:
    spec = load_environment(arguments.environment) if arguments.environment is not None else None
    check_folder(arguments.folder)
    problem = find_problem(arguments.problem or arguments.folder.resolve().name, arguments.problems_dir)
    return _evaluate([discover_problem(arguments.folder, problem, spec)], arguments)


def merge(arguments: argparse.Namespace) -> int:
    spec = load_environment(arguments.environment) if arguments.environment is not None else None
    runs = discover([arguments.folder], problems_dir=arguments.problems_dir, environment=spec)
    _refuse_nothing(runs)
    with open_runs(
        runs, Cache.default(), RunSettings(), first=lambda run: merge_copies(run, arguments.copies)
    ) as evaluation:
        return _conclude(evaluation, arguments)


def _evaluate(runs: Sequence[DiscoveredRun], arguments: argparse.Namespace, *, partial: bool = False) -> int:
    _refuse_results(runs)
    _refuse_nothing(runs)
    executor_class(arguments.executor)
    settings = RunSettings(
        workers=arguments.num_workers,
        executor=arguments.executor,
        address=arguments.ray_address,
        retries=Retries(times=arguments.retries),
        overwrite=arguments.overwrite,
        shard=Shard.parse(arguments.shard) if arguments.shard is not None else None,
        partial=partial,
    )
    _warn(runs)
    if (count := sum(len(run.submissions) for run in runs)) >= MANY:
        print_step(f"checking {count} submissions")
    with open_runs(runs, Cache.default(), settings, hold=not arguments.dry_run) as evaluation:
        if arguments.dry_run:
            return _show_plan(evaluation, arguments)
        _remember(evaluation.runs, arguments)
        control = RunControl()
        if evaluation.plan.jobs:
            _run_jobs(evaluation, control, arguments)
        if control.stopped:
            raise KeyboardInterrupt
        status = _conclude(evaluation, arguments)
        return Exit.INTERRUPTED if control.finishing else status


def _remember(runs: Sequence[DiscoveredRun], arguments: argparse.Namespace) -> None:
    """For `slop-code rerun`, which is given nothing but a result."""
    origin = Origin(
        problems_dir=str(problems_folder(arguments.problems_dir).absolute()),
        environment=place_of_environment(arguments.environment),
    )
    for run in runs:
        if run.folder is not None:
            origin.keep(run.folder)


def _warn(runs: Sequence[DiscoveredRun]) -> None:
    for warning in dict.fromkeys(warning for run in runs for warning in run.warnings):
        print_step(f"warning: {one_line(warning)}")


def _refuse_nothing(runs: Sequence[DiscoveredRun]) -> None:
    for run in runs:
        if not run.submissions and not run.issues:
            raise UsageError(nothing_in(run))


def _refuse_results(runs: Sequence[DiscoveredRun]) -> None:
    """Among several, such a run does not keep the others from being evaluated."""
    for run in runs:
        if only_results(run):
            folder = shlex.quote(str(run.folder))
            look = f"look at them with `slop-code report {folder}`, check them with `slop-code verify {folder}`"
            told = f"{run.folder}: results, but no snapshot to evaluate; its summary is left as it is; {look}"
            if len(runs) == 1:
                raise UsageError(told)
            print_step(f"warning: {one_line(told)}")


def _run_jobs(evaluation: RunEvaluation, control: RunControl, arguments: argparse.Namespace) -> None:
    from slop_code.reporting.run_progress import RunProgress

    plan, live, say = evaluation.plan, arguments.live_progress, _LongSteps()
    with evaluation.executor(say) as executor:
        with RunProgress(
            plan.jobs,
            len(plan.kept),
            executor.slots,
            arguments.pass_policy,
            live=sys.stderr.isatty() if live is None else live,
        ) as progress:
            say.show = progress.step
            with interrupts(control, progress.stopping):
                for event in evaluation.events(executor, control):
                    if isinstance(event, JobStarted):
                        progress.started(event)
                    elif isinstance(event, JobRetrying):
                        progress.retrying(event)
                    else:
                        progress.finished(event)


class _LongSteps:
    """Of all steps of the evaluations, those that may take minutes are shown."""

    def __init__(self) -> None:
        self.show: ProgressCallback = print_progress

    def __call__(self, event: ProgressEvent) -> None:
        if event.is_long:
            self.show(event)


@contextlib.contextmanager
def interrupts(control: RunControl, stopping: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C once: what runs comes to its end. Twice, told to end, or without its terminal: it is ended now.

    Nothing is raised here: what runs is always known to whoever ends it.
    """

    def interrupt(_number: int, _frame: object) -> None:
        if control.finishing:
            control.stop()
            signal.signal(signal.SIGINT, signal.default_int_handler)
        else:
            control.finish()
            stopping()

    def end(_number: int, _frame: object) -> None:
        control.stop()

    handlers = {signal.SIGINT: interrupt, signal.SIGTERM: end}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        handlers[signal.SIGHUP] = end
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _conclude(evaluation: RunEvaluation, arguments: argparse.Namespace) -> int:
    from slop_code.reporting.run_table import show_run
    from slop_code.reporting.terminal import ResultConsole

    lines, summary = evaluation.conclude(arguments.pass_policy)
    policy: Policy = arguments.pass_policy
    if evaluation.settings.shard is not None:
        summary = without_samples(summary)
        if not lines and not summary.troubles and not arguments.json:
            print("nothing in this shard")
            return Exit.PASSED
    if arguments.output is not None:
        write_summary(arguments.output, _seen_from(arguments.output, lines, evaluation.runs), evaluation.plan.issues)
    with contextlib.suppress(BrokenPipeError):  # who has seen enough still gets the exit status
        if arguments.json:
            print(summary.model_dump_json(indent=2), flush=True)
        else:
            show_run(summary, lines, policy, ResultConsole())
            sys.stdout.flush()
    status = _status(summary, policy)
    if status != Exit.PASSED and sys.stderr.isatty() and not arguments.json:
        folders = [str(run.folder) for run in evaluation.runs if run.folder]
        print_step(f"where it broke, and why: slop-code report {shlex.join(folders)}")
    return status


def _seen_from(place: Path, lines: Sequence[CheckpointLine], runs: Sequence[DiscoveredRun]) -> list[CheckpointLine]:
    """Lines of several runs, for a file that lies elsewhere."""
    folders = {run.name: run.folder for run in runs}

    def seen(line: CheckpointLine) -> str | None:
        folder = folders[line.run]
        return os.path.relpath(folder / line.evaluation, place) if line.evaluation and folder else line.evaluation

    return [CheckpointLine.model_validate({**dict(line), "evaluation": seen(line)}) for line in lines]


def _status(summary: RunSummary, policy: Policy) -> Exit:
    """Passed is what every planned checkpoint has to be; without a verdict for one there is no answer.

    Of nothing, every one has passed: a shard may be empty.
    """
    counted = summary.totals.checkpoints
    if summary.troubles or counted.evaluated < counted.planned:
        return Exit.INFRASTRUCTURE
    return Exit.PASSED if summary.totals.passed[policy].count == counted.planned else Exit.NOT_PASSED


def _show_plan(evaluation: RunEvaluation, arguments: argparse.Namespace) -> int:
    from slop_code.reporting.plan_lines import show_plan
    from slop_code.reporting.terminal import ResultConsole

    plan = evaluation.plan
    if arguments.json:
        print(json.dumps(_plan_document(plan), indent=2))
    else:
        show_plan(plan, arguments.num_workers or available_cpus(), ResultConsole())
    return Exit.INFRASTRUCTURE if plan.issues else Exit.PASSED


def _plan_document(plan: Plan) -> dict[str, object]:
    return {
        "jobs": [
            {
                "submissions": [target.label for target in job.targets],
                "action": "store" if job.stored else "run",
                "reason": "; ".join(dict.fromkeys(plan.reason(job, target) for target in job.targets)),
                "expected_seconds": job.expected_s,
            }
            for job in plan.jobs
        ],
        "up_to_date": [submission.label for submission, _ in plan.kept],
        "troubles": [{"label": issue.label, "reason": issue.reason} for issue in plan.issues],
    }
