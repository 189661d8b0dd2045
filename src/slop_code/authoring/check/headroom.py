"""Distance between limits and the needs of a reference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.evaluation.run_tests import session_timeout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.execution.environment import EnvironmentSpec, Limits

FACTOR = 4
SUGGESTED_FACTOR = 10
ROUND_SECONDS = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600)
"""Usual values of a timeout."""

FLOORS = {"memory": 32 << 20, "processes": 2, "disk": 4 << 20, "output": 64 << 10}
"""Lower bounds of reduced limits: with less, no program would run."""

UNITS = (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10))


def suggested_timeout(slowest: float) -> int:
    """At least ten times the slowest test, rounded up, as other machines are slower and busier."""
    target = SUGGESTED_FACTOR * slowest
    return next(
        (step for step in ROUND_SECONDS if step >= target), math.ceil(target / ROUND_SECONDS[-1]) * ROUND_SECONDS[-1]
    )


def test_seconds(test: TestResult) -> float:
    return test.duration_ms / 1000


@dataclass(frozen=True, slots=True)
class TimeHeadroom:
    """Seconds that a checkpoint's reference takes, and its timeouts."""

    tests: tuple[TestResult, ...]
    """Passed tests under the checkpoint's timeout, without those that have a timeout marker."""

    timeout: float
    whole: float
    session_timeout: float

    @classmethod
    def of(cls, checkpoint: CheckpointConfig, results: CorrectnessResults) -> TimeHeadroom:
        timed = (test for test in results.tests if test.status == "passed" and "timeout" not in test.markers)
        whole = session_timeout(checkpoint, len(results.tests))
        return cls(tuple(timed), checkpoint.timeout, results.phases["tests"], whole)

    @property
    def slowest(self) -> TestResult | None:
        return max(self.tests, key=test_seconds, default=None)

    @property
    def suggested(self) -> int | None:
        return suggested_timeout(test_seconds(self.slowest)) if self.slowest else None


def with_reduced_limits(environment: EnvironmentSpec, names: Iterable[str]) -> EnvironmentSpec:
    """The environment with a quarter of these limits."""
    limits = environment.limits
    smaller = {name: reduced_limit(limits, name) for name in names}
    return environment.model_copy(update={"limits": limits.model_copy(update=smaller)})


def reducible_limits(limits: Limits) -> tuple[str, ...]:
    """The names of limits that are above their lower bounds."""
    return tuple(name for name in FLOORS if reduced_limit(limits, name) < getattr(limits, name))


def reduced_limit(limits: Limits, name: str) -> int:
    return reduced(getattr(limits, name), FLOORS[name])


def limit_summary(limits: Limits, name: str) -> str:
    """The limit, and the reduced limit that was tried."""
    tried = (
        f"tried {limit_text(name, reduced_limit(limits, name))}"
        if name in reducible_limits(limits)
        else "not tried: the minimum"
    )
    return f"{name} {limit_text(name, getattr(limits, name))} ({tried})"


def reduced(limit: int, floor: int) -> int:
    return min(limit, max(limit // FACTOR, floor))


def limit_text(name: str, value: int) -> str:
    """The value as in an environment file."""
    if name == "processes":
        return str(value)
    unit, size = next((pair for pair in UNITS if value >= pair[1]), ("", 1))
    return f"{value / size:.3g}{unit}" if value < 1000 * size else f"{value // size}{unit}"
