"""One checkpoint → CorrectnessResults."""

from typing import TYPE_CHECKING

from slop_code._lazy_names import lazy_names

if TYPE_CHECKING:
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

__getattr__ = lazy_names(
    __name__,
    {
        "slop_code.errors": ("ConfigError",),
        "slop_code.evaluation.config": ("CheckpointConfig", "MarkerConfig", "ProblemConfig"),
        "slop_code.evaluation.groups": ("GroupType",),
        "slop_code.evaluation.policy": ("PassPolicy",),
        "slop_code.evaluation.pytest_runner": ("PytestRunner", "run_checkpoint_pytest"),
        "slop_code.evaluation.report": ("CorrectnessResults", "TestResult"),
    },
)
