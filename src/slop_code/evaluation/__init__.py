"""One checkpoint → CorrectnessResults."""

from slop_code.errors import ConfigError
from slop_code.evaluation.config import CheckpointConfig, MarkerConfig, ProblemConfig
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import PassPolicy
from slop_code.evaluation.pytest_runner import PytestRunner, run_checkpoint_pytest
from slop_code.evaluation.report import CorrectnessResults, TestResult

__all__ = [
    "CheckpointConfig",
    "ConfigError",
    "CorrectnessResults",
    "GroupType",
    "MarkerConfig",
    "PassPolicy",
    "ProblemConfig",
    "PytestRunner",
    "TestResult",
    "run_checkpoint_pytest",
]
