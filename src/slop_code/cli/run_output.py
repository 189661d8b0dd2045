"""Summary and exit status of evaluated runs, and the plan of a dry run."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import print_json, print_step
from slop_code.execution.concurrency import available_cpus
from slop_code.runs.checkpoint_lines import CheckpointLine
from slop_code.runs.summary import without_samples, write_summary

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from slop_code.evaluation.policy import Policy
    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.plan import Plan
    from slop_code.runs.run_evaluation import RunEvaluation
    from slop_code.runs.summary import RunSummary


def conclude(evaluation: RunEvaluation, arguments: argparse.Namespace) -> int:
    """Writes and prints the summary; returns the exit status."""
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
        write_summary(arguments.output, _relative_to(arguments.output, lines, evaluation.runs), evaluation.plan.issues)
    with contextlib.suppress(BrokenPipeError):  # a closed pipe does not change the exit status
        if arguments.json:
            print(summary.model_dump_json(indent=2), flush=True)
        else:
            show_run(summary, lines, policy, ResultConsole())
            sys.stdout.flush()
    status = _status(summary, policy)
    if status != Exit.PASSED and sys.stderr.isatty() and not arguments.json:
        folders = [str(run.folder) for run in evaluation.runs if run.folder]
        print_step(f"failures in detail: slop-code report {shlex.join(folders)}")
    return status


def _relative_to(folder: Path, lines: Sequence[CheckpointLine], runs: Sequence[DiscoveredRun]) -> list[CheckpointLine]:
    """Lines of several runs with the paths of their results relative to `folder`."""
    folders = {run.name: run.folder for run in runs}

    def relative(line: CheckpointLine) -> str | None:
        run = folders[line.run]
        return os.path.relpath(run / line.evaluation, folder) if line.evaluation and run else line.evaluation

    return [CheckpointLine.model_validate({**dict(line), "evaluation": relative(line)}) for line in lines]


def _status(summary: RunSummary, policy: Policy) -> Exit:
    """Passed if every planned checkpoint passed, also where none is planned: a shard may be empty."""
    checkpoints = summary.totals.checkpoints
    if summary.troubles or checkpoints.evaluated < checkpoints.planned:
        return Exit.INFRASTRUCTURE
    return Exit.PASSED if summary.totals.passed[policy].count == checkpoints.planned else Exit.NOT_PASSED


def print_plan(evaluation: RunEvaluation, arguments: argparse.Namespace) -> int:
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
                "reason": "; ".join(dict.fromkeys(plan.reason(job, target) for target in job.targets)),
                "expected_seconds": job.expected_s,
            }
            for job in plan.jobs
        ],
        "up_to_date": [submission.label for submission, _ in plan.up_to_date],
        "troubles": [{"label": issue.label, "reason": issue.reason} for issue in plan.issues],
    }
