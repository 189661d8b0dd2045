"""Many checkpoints: what is there, what is left to do, doing it, and what it comes to."""

from slop_code.runs.asynchronous import evaluate_run_async
from slop_code.runs.checkpoint_lines import CheckpointLine, Facts
from slop_code.runs.evaluate_run import evaluate_run
from slop_code.runs.job_records import Outcome, Submission
from slop_code.runs.plan import Shard
from slop_code.runs.read_results import Entry, RunResults, read_runs
from slop_code.runs.run_control import Control, Retries
from slop_code.runs.summary import RunSummary

__all__ = [
    "CheckpointLine",
    "Control",
    "Entry",
    "Facts",
    "Outcome",
    "Retries",
    "RunResults",
    "RunSummary",
    "Shard",
    "Submission",
    "evaluate_run",
    "evaluate_run_async",
    "read_runs",
]
