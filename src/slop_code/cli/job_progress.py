"""Progress of planned jobs on standard error, and their interruption by signals."""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import TYPE_CHECKING

from slop_code.cli.messages import print_progress
from slop_code.runs.job_records import JobRetrying, JobStarted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from slop_code.execution.progress_events import ProgressCallback, ProgressEvent
    from slop_code.runs.run_control import RunControl
    from slop_code.runs.run_evaluation import RunEvaluation


def run_with_progress(evaluation: RunEvaluation, control: RunControl, arguments: argparse.Namespace) -> None:
    from slop_code.reporting.progress_tracker import ProgressTracker
    from slop_code.reporting.run_progress import RunProgress

    plan, steps = evaluation.plan, _LongSteps()
    live = sys.stderr.isatty() if arguments.live_progress is None else arguments.live_progress
    with evaluation.executor(steps) as executor:
        tracker = ProgressTracker(plan.jobs, executor.slots, arguments.pass_policy)
        with RunProgress(tracker, len(plan.up_to_date), live=live) as progress:
            steps.show = progress.step
            with interrupts(control, progress.stopping):
                for event in evaluation.events(executor, control):
                    if isinstance(event, JobStarted):
                        progress.started(event)
                    elif isinstance(event, JobRetrying):
                        progress.retrying(event)
                    else:
                        progress.finished(event)


class _LongSteps:
    """Progress callback that shows only the steps that may take minutes."""

    def __init__(self) -> None:
        self.show: ProgressCallback = print_progress

    def __call__(self, event: ProgressEvent) -> None:
        if event.is_long:
            self.show(event)


@contextlib.contextmanager
def interrupts(control: RunControl, stopping: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C lets running jobs finish. The second, SIGTERM and a closed terminal (SIGHUP) stop them now.

    The handlers raise nothing, so that the scheduler always knows its running jobs.
    """

    def interrupt(_number: int, _frame: object) -> None:
        if control.finishing:
            control.stop()
            signal.signal(signal.SIGINT, signal.default_int_handler)
        else:
            control.finish()
            stopping()

    def stop(_number: int, _frame: object) -> None:
        control.stop()

    handlers = {signal.SIGINT: interrupt, signal.SIGTERM: stop}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # ignored under nohup
        handlers[signal.SIGHUP] = stop
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
