"""What `slop-code eval`, `eval-problem` and `merge` do."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import TYPE_CHECKING

from slop_code.cli.eval_run import LAYOUT
from slop_code.cli.exits import Exit
from slop_code.errors import UsageError
from slop_code.evaluation.find import find_problem
from slop_code.evaluation.policy import PassPolicy
from slop_code.execution.cache import Cache
from slop_code.execution.spec import load_environment
from slop_code.execution.threads import processors
from slop_code.runs.conclude import write_summary
from slop_code.runs.control import Control, Retries
from slop_code.runs.discover import check_folder, discover, discover_problem
from slop_code.runs.evaluate import Settings, opened
from slop_code.runs.lines import CheckpointLine
from slop_code.runs.merge import gather
from slop_code.runs.plan import Shard
from slop_code.runs.records import Retrying, Started

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from slop_code.runs.discover import Run
    from slop_code.runs.evaluate import Evaluation
    from slop_code.runs.plan import Plan
    from slop_code.runs.summary import RunSummary

MANY = 100
"""Submissions whose digests take a while."""

LONG = ("pulling", "fetching", "warming", "set-up")


def evaluate(arguments: argparse.Namespace) -> int:
    spec = load_environment(arguments.environment) if arguments.environment is not None else None
    runs = discover(arguments.runs, problems_dir=arguments.problems_dir, environment=spec, only=arguments.problem)
    status = _evaluate(runs, arguments)
    if arguments.problem and not arguments.dry_run and not arguments.shard:
        _say(f"the summary is of {', '.join(arguments.problem)} alone; `slop-code merge RUN_DIR` makes that of all")
    return status


def evaluate_problem(arguments: argparse.Namespace) -> int:
    spec = load_environment(arguments.environment) if arguments.environment is not None else None
    check_folder(arguments.folder)
    problem = find_problem(arguments.problem or arguments.folder.resolve().name, arguments.problems_dir)
    return _evaluate([discover_problem(arguments.folder, problem, spec)], arguments)


def merge(arguments: argparse.Namespace) -> int:
    spec = load_environment(arguments.environment) if arguments.environment is not None else None
    runs = discover([arguments.folder], problems_dir=arguments.problems_dir, environment=spec)
    _refuse_nothing(runs)
    with opened(runs, Cache.default(), Settings(), first=lambda run: gather(run, arguments.copies)) as evaluation:
        evaluation.keep()
        return _conclude(evaluation, arguments)


def _evaluate(runs: Sequence[Run], arguments: argparse.Namespace) -> int:
    _refuse_nothing(runs)
    settings = Settings(
        workers=arguments.num_workers,
        executor=arguments.executor,
        address=arguments.ray_address,
        retries=Retries(times=arguments.retries),
        overwrite=arguments.overwrite,
        shard=Shard.parse(arguments.shard) if arguments.shard is not None else None,
    )
    if (count := sum(len(run.submissions) for run in runs)) >= MANY:
        _say(f"checking {count} submissions")
    with opened(runs, Cache.default(), settings, hold=not arguments.dry_run) as evaluation:
        if arguments.dry_run:
            return _show_plan(evaluation, arguments)
        control = Control()
        evaluation.keep()
        if evaluation.plan.jobs:
            _run_jobs(evaluation, control, arguments)
        if control.stopped:
            raise KeyboardInterrupt
        status = _conclude(evaluation, arguments)
        return Exit.INTERRUPTED if control.finishing else status


def _refuse_nothing(runs: Sequence[Run]) -> None:
    for run in runs:
        if not run.submissions and not run.troubles:
            raise UsageError(f"{run.folder}: nothing to evaluate; expected {LAYOUT}")


def _run_jobs(evaluation: Evaluation, control: Control, arguments: argparse.Namespace) -> None:
    from slop_code.reporting.progress import RunProgress

    plan, live, say = evaluation.plan, arguments.live_progress, _Steps()
    with evaluation.executor(say) as executor:
        with RunProgress(
            plan.jobs,
            len(plan.kept),
            executor.slots,
            PassPolicy(arguments.pass_policy),
            live=sys.stderr.isatty() if live is None else live,
        ) as progress:
            say.tell = progress.said
            with _interrupts(control, progress.stopping):
                for event in evaluation.events(executor, control):
                    if isinstance(event, Started):
                        progress.started(event)
                    elif isinstance(event, Retrying):
                        progress.retrying(event)
                    else:
                        progress.finished(event)


class _Steps:
    """Of all that is done for each evaluation, what takes long is told."""

    def __init__(self) -> None:
        self.tell: Callable[[str], None] = _say

    def __call__(self, step: str) -> None:
        if step.startswith(LONG):
            self.tell(step)


def _say(step: str) -> None:
    print(f"· {step}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _interrupts(control: Control, stopping: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C once: what runs comes to its end. Twice, or told to end: it is ended now.

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
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _conclude(evaluation: Evaluation, arguments: argparse.Namespace) -> int:
    from slop_code.reporting.run_table import show_run
    from slop_code.reporting.terminal import ResultConsole

    lines, summary = evaluation.conclude()
    policy = PassPolicy(arguments.pass_policy)
    if arguments.output is not None:
        write_summary(arguments.output, _seen_from(arguments.output, lines, evaluation.runs), evaluation.plan.troubles)
    with contextlib.suppress(BrokenPipeError):  # who has seen enough still gets the exit status
        if arguments.json:
            print(summary.model_dump_json(indent=2), flush=True)
        else:
            show_run(summary, lines, policy, ResultConsole())
            sys.stdout.flush()
    return _status(summary, policy)


def _seen_from(place: Path, lines: Sequence[CheckpointLine], runs: Sequence[Run]) -> list[CheckpointLine]:
    """Lines of several runs, for a file that lies elsewhere."""
    folders = {run.name: run.folder for run in runs}

    def seen(line: CheckpointLine) -> str | None:
        folder = folders[line.run]
        return os.path.relpath(folder / line.evaluation, place) if line.evaluation and folder else line.evaluation

    return [CheckpointLine.model_validate({**dict(line), "evaluation": seen(line)}) for line in lines]


def _status(summary: RunSummary, policy: PassPolicy) -> Exit:
    """Passed is what every planned checkpoint has to be; without a verdict for one there is no answer."""
    counted = summary.totals.checkpoints
    if summary.troubles or counted.evaluated < counted.planned:
        return Exit.INFRASTRUCTURE
    return Exit.PASSED if summary.totals.passed[policy].count == counted.planned else Exit.NOT_PASSED


def _show_plan(evaluation: Evaluation, arguments: argparse.Namespace) -> int:
    from slop_code.reporting.plan_table import show_plan
    from slop_code.reporting.terminal import ResultConsole

    plan = evaluation.plan
    if arguments.json:
        print(json.dumps(_plan_document(plan), indent=2))
    else:
        show_plan(plan, arguments.num_workers or processors(), ResultConsole())
    return Exit.INFRASTRUCTURE if plan.troubles else Exit.PASSED


def _plan_document(plan: Plan) -> dict[str, object]:
    return {
        "jobs": [
            {
                "submissions": [target.label for target in job.targets],
                "action": "store" if job.stored else "run",
                "reason": job.reason,
                "expected_seconds": job.expected_s,
            }
            for job in plan.jobs
        ],
        "up_to_date": [submission.label for submission, _ in plan.kept],
        "troubles": [{"label": trouble.label, "reason": trouble.reason} for trouble in plan.troubles],
    }
