"""Action of `slop-code eval --follow`: evaluation of the snapshots of a run while an agent still works on it."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from slop_code._safe_text import decoded_name
from slop_code.cli.eval.eval_actions import (
    conclude,
    discover_given,
    given_environment,
    refuse_nothing_to_evaluate,
    run_settings,
)
from slop_code.cli.eval.live_report import check_report, kept_report
from slop_code.cli.exit_codes import Exit
from slop_code.cli.job_progress import run_with_progress
from slop_code.cli.messages import print_step
from slop_code.cli.shared_options import selection_words
from slop_code.cli.signals import interrupts
from slop_code.errors import UsageError
from slop_code.execution.cache import Cache
from slop_code.reporting.text import one_line
from slop_code.runs.discover import DiscoveredRun, check_problems_folder
from slop_code.runs.executors import is_remote
from slop_code.runs.folders.mirror import check_mirror
from slop_code.runs.follow.completeness import has_run_ended
from slop_code.runs.follow.follower import Follower
from slop_code.runs.follow.stop_file import STOP_FILE, StopFile, check_stop_file, misses, remove_stop_file
from slop_code.runs.jobs.run_control import RunControl
from slop_code.runs.results_so_far import results_so_far, stored_results
from slop_code.runs.run_evaluation import RunSettings, open_runs

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

    from slop_code.reporting.html.live_page import ReadResults
    from slop_code.runs.jobs.job_records import SubmissionOutcome
    from slop_code.runs.read_results import RunResults
    from slop_code.runs.run_evaluation import RunEvaluation

POLL_S = 0.5
POLL_SHARE = 10
"""A look at the run takes at most one part in this many of the time: large snapshots are looked at less often."""

MAX_SETTLING_S = 60
"""Time that snapshots have to become complete after the end of the run."""


def follow(arguments: argparse.Namespace, clock: Callable[[], float] = time.monotonic) -> int:
    """`clock` is that of the settle time."""
    _check_options(arguments)
    settings = run_settings(arguments, partial=bool(arguments.problem))
    given_environment(arguments)
    check_problems_folder(arguments.problems_dir)
    check_report(arguments)
    followed = _FollowedRun(arguments, settings, Follower(arguments.settle, clock))
    if arguments.output is not None:  # the run may not be there yet
        check_mirror(arguments.output, [DiscoveredRun(followed.folder.name, arguments.output, source=followed.folder)])
    if arguments.stop_at is not None:
        check_stop_file(followed.output)
    remove_stop_file(followed.output)  # before anything is awaited: a harness would take it for a new one
    with kept_report(arguments) as followed.show:
        return followed.run()


def _check_options(arguments: argparse.Namespace) -> None:
    if len(arguments.runs) > 1:
        raise UsageError("--follow takes one RUN_DIR; start a command for each run")
    if arguments.dry_run or arguments.shard or arguments.overwrite or arguments.samples or selection_words(arguments):
        others = "--dry-run, --shard, --overwrite, --samples or a selection of tests"
        raise UsageError(f"--follow cannot be used with {others}; evaluate with these when the run has ended")
    if arguments.metrics:
        raise UsageError("--follow cannot be used with --metrics; run slop-code metrics when the run has ended")
    if arguments.replace:
        raise UsageError("--follow cannot be used with --replace, as others still write to the run; give -o OUT")
    if is_remote(arguments.executor):
        raise UsageError(f"--follow evaluates on this machine; leave out --executor {arguments.executor}")


@dataclass(slots=True)
class _FollowedRun:
    arguments: argparse.Namespace
    settings: RunSettings
    follower: Follower
    control: RunControl = field(default_factory=RunControl)
    stop: StopFile | None = None
    """The checkpoint that did not reach the policy of --stop-at."""

    ended: bool = False
    """Whether the agent's run has ended."""

    printed: set[str] = field(default_factory=set)
    show: Callable[[ReadResults], None] = field(default=lambda _: None)
    """See `kept_report`."""

    def __post_init__(self) -> None:
        self.settings = replace(self.settings, unchanged=self.follower.is_unchanged)

    @property
    def folder(self) -> Path:
        folder: Path = self.arguments.runs[0]
        return folder

    @property
    def output(self) -> Path:
        """The folder of the results."""
        return self.arguments.output or self.folder

    def _stored(self) -> list[RunResults]:
        return stored_results([DiscoveredRun(decoded_name(self.folder.resolve().name), self.output)])

    def run(self) -> int:
        self.show(self._stored)
        try:
            while (run := self._next()) is not None:
                self._evaluate(run)
        except KeyboardInterrupt:  # before the first job, or after the control was stopped
            self.control.stop()
        run = self._look()
        if run is not None and not self.control.finishing:
            refuse_nothing_to_evaluate([run])
        status: int = Exit.INTERRUPTED
        if run is not None and (run.submissions or run.issues):
            status = self._evaluate(run, last=True)
        if self.stop is not None:
            label = f"{self.stop.problem}/{self.stop.checkpoint}"
            print_step(f"{label} did not reach {self.stop.policy}; written: {self.output / STOP_FILE}")
            return Exit.STOPPED
        if not self.control.finishing:
            return status
        with contextlib.suppress(OSError):  # the terminal may be gone
            print_step("interrupted; the same command goes on")
        return Exit.INTERRUPTED

    def _next(self) -> DiscoveredRun | None:
        """The run, once it has a new complete snapshot; None when it has ended, or the user ends the command."""
        ended_since = None
        with interrupts(self.control, lambda: None):
            while not self.control.finishing:
                began = time.monotonic()
                self.ended |= has_run_ended(self.folder)  # before the look, which sees what was written before
                ended_since = (ended_since or began) if self.ended else None
                run = self._look()
                if run is not None and self.follower.has_new(run):
                    return run
                if ended_since is not None and not (self.follower.settling and began - ended_since < MAX_SETTLING_S):
                    return None
                self.control.wait(max(POLL_S, POLL_SHARE * (time.monotonic() - began)))
        return None

    def _look(self) -> DiscoveredRun | None:
        """The run as it is now; None where nothing of it is there yet."""
        if not os.path.lexists(self.folder):
            self._print_state(f"waiting for {self.folder}")
            return None
        named = self.arguments.problem
        wanted = [name for name in named if self.ended or os.path.lexists(self.folder / name)]
        if named and not wanted:
            self._print_state(f"waiting for {named[0]} in {self.folder}")
            return None
        run = self.follower.hold_back(discover_given(self.arguments, wanted, self.arguments.output)[0])
        for warning in run.warnings:
            self._print_once(f"warning: {warning}")
        for issue in run.issues:
            if issue.unknown_problem or issue.checkpoint is None:
                self._print_once(f"{issue.problem or issue.label}: {issue.reason}")
        if not run.submissions:
            self._print_state(f"waiting for a complete snapshot in {self.folder}")
        return run

    def _print_once(self, text: str) -> None:
        if text not in self.printed:
            self.printed.add(text)
            print_step(one_line(text))

    def _print_state(self, text: str) -> None:
        if not self.arguments.quiet:
            self._print_once(text)

    def _evaluate(self, run: DiscoveredRun, *, last: bool = False) -> int:
        """`last` is the end of the command, which prints the summary and gives the exit status."""
        with open_runs([run], Cache.default(), self.settings) as evaluation:
            (locked,) = evaluation.runs
            evaluation.remember_origins(self.arguments.environment)
            self.show(partial(results_so_far, evaluation))
            for outcome in evaluation.outcomes_without_jobs():
                self._check_stop(outcome)
            if evaluation.plan.jobs and not self.control.finishing:
                run_with_progress(
                    evaluation,
                    self.control,
                    self.arguments,
                    lambda outcome: self._finished(evaluation, outcome),
                    lambda: self.show(partial(results_so_far, evaluation)),
                )
            status: int = Exit.PASSED
            if last:
                status = conclude(evaluation, self.arguments, quiet=self.control.stopped)
            else:
                evaluation.conclude()
        self.show(self._stored)
        if run.submissions and not locked.submissions:  # another evaluator holds the run
            self._print_once(locked.issues[0].reason)
            self.control.wait(POLL_S)
        else:
            self.follower.evaluated(run)
        return status

    def _finished(self, evaluation: RunEvaluation, outcome: SubmissionOutcome) -> None:
        self._check_stop(outcome)
        evaluation.conclude()
        self.show(partial(results_so_far, evaluation))

    def _check_stop(self, outcome: SubmissionOutcome) -> None:
        policy = self.arguments.stop_at
        if policy is not None and self.stop is None and misses(outcome.facts, policy):
            self.stop = StopFile.of(outcome.submission, outcome.facts, policy)
            self.stop.write(self.output)
            self.control.finish()
