"""Evaluation of many checkpoints: discover, plan, schedule, summarise."""

from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine, read_lines
from slop_code.runs.job_records import Submission, SubmissionOutcome
from slop_code.runs.plan import Shard
from slop_code.runs.read_results import RunResults, StoredCheckpoint, read_runs
from slop_code.runs.run_control import Retries, RunControl
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
