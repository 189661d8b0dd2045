"""slop-code, the evaluation system of SCBench: the names here are the public API, see `docs/reference/python.md`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from slop_code._lazy_names import lazy_names
from slop_code._version import __version__

if TYPE_CHECKING:
    from slop_code.api import evaluate, evaluate_async, load_environment, load_problem, load_results
    from slop_code.errors import (
        ConfigError,
        InfrastructureError,
        ResultError,
        SlopCodeError,
        SubmissionError,
        UsageError,
    )
    from slop_code.evaluation import (
        CheckpointConfig,
        CorrectnessResults,
        GroupType,
        PassPolicy,
        ProblemConfig,
        TestResult,
    )
    from slop_code.evaluation.evaluator.evaluator import Evaluator
    from slop_code.evaluation.evaluator.evaluator_records import EvaluatorOutcome, EvaluatorRequest
    from slop_code.evaluation.policy import Policy, parse_policy
    from slop_code.execution import EnvironmentSpec
    from slop_code.execution.cancellation import EvaluationCancelledError
    from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine, read_lines
    from slop_code.runs.jobs.job_records import Submission, SubmissionOutcome
    from slop_code.runs.jobs.plan import Shard
    from slop_code.runs.jobs.run_control import Retries, RunControl
    from slop_code.runs.read_results import RunResults, StoredCheckpoint, read_runs
    from slop_code.runs.runs_api import evaluate_run, evaluate_run_async
    from slop_code.runs.summary import RunSummary

__all__ = [
    "CheckpointConfig",
    "CheckpointFacts",
    "CheckpointLine",
    "ConfigError",
    "CorrectnessResults",
    "EnvironmentSpec",
    "EvaluationCancelledError",
    "Evaluator",
    "EvaluatorOutcome",
    "EvaluatorRequest",
    "GroupType",
    "InfrastructureError",
    "PassPolicy",
    "Policy",
    "ProblemConfig",
    "ResultError",
    "Retries",
    "RunControl",
    "RunResults",
    "RunSummary",
    "Shard",
    "SlopCodeError",
    "StoredCheckpoint",
    "Submission",
    "SubmissionError",
    "SubmissionOutcome",
    "TestResult",
    "UsageError",
    "__version__",
    "evaluate",
    "evaluate_async",
    "evaluate_run",
    "evaluate_run_async",
    "load_environment",
    "load_problem",
    "load_results",
    "parse_policy",
    "read_lines",
    "read_runs",
]

__getattr__ = lazy_names(
    __name__,
    {
        "slop_code.api": ("evaluate", "evaluate_async", "load_environment", "load_problem", "load_results"),
        "slop_code.errors": (
            "ConfigError", "InfrastructureError", "ResultError", "SlopCodeError", "SubmissionError", "UsageError",
        ),
        "slop_code.evaluation": (
            "CheckpointConfig", "CorrectnessResults", "GroupType", "PassPolicy", "ProblemConfig", "TestResult",
        ),
        "slop_code.evaluation.evaluator.evaluator": ("Evaluator",),
        "slop_code.evaluation.evaluator.evaluator_records": ("EvaluatorOutcome", "EvaluatorRequest"),
        "slop_code.evaluation.policy": ("Policy", "parse_policy"),
        "slop_code.execution": ("EnvironmentSpec",),
        "slop_code.execution.cancellation": ("EvaluationCancelledError",),
        "slop_code.runs.checkpoint_lines": ("CheckpointFacts", "CheckpointLine", "read_lines"),
        "slop_code.runs.jobs.job_records": ("Submission", "SubmissionOutcome"),
        "slop_code.runs.jobs.plan": ("Shard",),
        "slop_code.runs.jobs.run_control": ("Retries", "RunControl"),
        "slop_code.runs.read_results": ("RunResults", "StoredCheckpoint", "read_runs"),
        "slop_code.runs.runs_api": ("evaluate_run", "evaluate_run_async"),
        "slop_code.runs.summary": ("RunSummary",),
    },
)  # fmt: skip

logging.getLogger(__name__).addHandler(logging.NullHandler())


def __dir__() -> list[str]:
    return __all__
