"""Running things in boxes; knows nothing of pytest."""

from slop_code.execution.session import Session
from slop_code.execution.spec import EnvironmentSpec

__all__ = ["EnvironmentSpec", "Session"]
