"""Running things in boxes; knows nothing of pytest."""

from slop_code.execution.environment import EnvironmentSpec
from slop_code.execution.session import Session

__all__ = ["EnvironmentSpec", "Session"]
