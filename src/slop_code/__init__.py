"""slop-code, the evaluation system of SCBench: the names here are the public API, see `docs/reference/python.md`."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING

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
    from slop_code.evaluation.policy import parse_policy
    from slop_code.execution import EnvironmentSpec
    from slop_code.runs import (
        CheckpointFacts,
        Retries,
        RunControl,
        RunResults,
        Shard,
        StoredCheckpoint,
        Submission,
        SubmissionOutcome,
        evaluate_run,
        evaluate_run_async,
        read_runs,
    )

__all__ = [
    "CheckpointConfig",
    "CheckpointFacts",
    "ConfigError",
    "CorrectnessResults",
    "EnvironmentSpec",
    "GroupType",
    "InfrastructureError",
    "PassPolicy",
    "ProblemConfig",
    "ResultError",
    "Retries",
    "RunControl",
    "RunResults",
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
    "read_runs",
]

_HOMES = ("errors", "execution", "evaluation", "evaluation.policy", "runs", "api")
"""Modules of these names."""

logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    """Import the API when a name of it is first used, so that the command line starts quickly."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = (importlib.import_module(f"slop_code.{home}") for home in _HOMES)
    return next(getattr(module, name) for module in modules if hasattr(module, name))


def __dir__() -> list[str]:
    return __all__
