"""Running things in boxes; knows nothing of pytest."""

from typing import TYPE_CHECKING

from slop_code._lazy_names import lazy_names

if TYPE_CHECKING:
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.session import Session

__all__ = ["EnvironmentSpec", "Session"]

__getattr__ = lazy_names(
    __name__,
    {
        "slop_code.execution.environment": ("EnvironmentSpec",),
        "slop_code.execution.session": ("Session",),
    },
)
