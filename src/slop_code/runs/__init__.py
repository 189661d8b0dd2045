"""Evaluation of many checkpoints: discover, plan, schedule, summarise."""

from typing import TYPE_CHECKING

from slop_code._lazy_names import lazy_names

if TYPE_CHECKING:
    from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine, read_lines
    from slop_code.runs.jobs.job_records import Submission, SubmissionOutcome
    from slop_code.runs.jobs.plan import Shard
    from slop_code.runs.jobs.run_control import Retries, RunControl
    from slop_code.runs.read_results import RunResults, StoredCheckpoint, read_runs
    from slop_code.runs.runs_api import evaluate_run, evaluate_run_async
    from slop_code.runs.summary import RunSummary

__all__ = [
    "CheckpointFacts",
    "CheckpointLine",
    "Retries",
    "RunControl",
    "RunResults",
    "RunSummary",
    "Shard",
    "StoredCheckpoint",
    "Submission",
    "SubmissionOutcome",
    "evaluate_run",
    "evaluate_run_async",
    "read_lines",
    "read_runs",
]

__getattr__ = lazy_names(
    __name__,
    {
        "CheckpointFacts": "slop_code.runs.checkpoint_lines",
        "CheckpointLine": "slop_code.runs.checkpoint_lines",
        "Retries": "slop_code.runs.jobs.run_control",
        "RunControl": "slop_code.runs.jobs.run_control",
        "RunResults": "slop_code.runs.read_results",
        "RunSummary": "slop_code.runs.summary",
        "Shard": "slop_code.runs.jobs.plan",
        "StoredCheckpoint": "slop_code.runs.read_results",
        "Submission": "slop_code.runs.jobs.job_records",
        "SubmissionOutcome": "slop_code.runs.jobs.job_records",
        "evaluate_run": "slop_code.runs.runs_api",
        "evaluate_run_async": "slop_code.runs.runs_api",
        "read_lines": "slop_code.runs.checkpoint_lines",
        "read_runs": "slop_code.runs.read_results",
    },
)
