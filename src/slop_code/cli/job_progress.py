"""Progress of planned jobs on standard error."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from slop_code.cli.messages import print_progress
from slop_code.cli.signals import interrupts
from slop_code.evaluation.context import ignore_progress
from slop_code.runs.jobs.job_records import JobPostponed, JobRetrying, JobStarted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from slop_code.execution.progress_events import ProgressCallback, ProgressEvent
    from slop_code.runs.jobs.job_records import SubmissionOutcome
    from slop_code.runs.jobs.run_control import RunControl
    from slop_code.runs.run_evaluation import RunEvaluation


def run_with_progress(
    evaluation: RunEvaluation,
    control: RunControl,
    arguments: argparse.Namespace,
    on_outcome: Callable[[SubmissionOutcome], None] = lambda _: None,
    on_tests_done: Callable[[], None] = lambda: None,
) -> None:
    """`on_outcome` gets each outcome, once it is shown; any thread calls `on_tests_done` when tests are done."""
    from slop_code.reporting.progress.progress_tracker import ProgressTracker
    from slop_code.reporting.progress.run_progress import RunProgress
    from slop_code.reporting.progress.status_line import is_live

    plan, steps = evaluation.plan, _RunSteps(quiet=arguments.quiet)
    live = is_live(sys.stderr) if arguments.live_progress is None else arguments.live_progress
    with open(os.devnull, "w") as nowhere, evaluation.executor(steps) as executor:
        stream = nowhere if arguments.quiet else None
        part = bool(evaluation.settings.pytest_args)
        tracker = ProgressTracker(plan.jobs, executor.slots, arguments.pass_policy, part=part)
        with RunProgress(tracker, len(plan.up_to_date), live=live and not stream, stream=stream) as progress:

            def tests_done(event: ProgressEvent) -> None:
                progress.tests_done(event)
                evaluation.note_tests_done(event)
                on_tests_done()

            steps.show, steps.tests_done = progress.step, tests_done
            with interrupts(control, progress.stopping):
                for event in evaluation.events(executor, control):
                    if isinstance(event, JobStarted):
                        progress.started(event)
                    elif isinstance(event, JobRetrying):
                        progress.retrying(event)
                    elif isinstance(event, JobPostponed):
                        progress.postponed(event)
                    else:
                        progress.finished(event)
                        on_outcome(event)


class _RunSteps:
    """Progress callback that shows tests done and steps that may take minutes, or nothing where it is quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.show: ProgressCallback = print_progress
        self.tests_done: ProgressCallback = ignore_progress

    def __call__(self, event: ProgressEvent) -> None:
        if event.is_count:
            self.tests_done(event)
        elif event.is_long and not self.quiet:
            self.show(event)
