"""How far limits are from what a reference needs."""

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
GENEROUS = 10
STEPS = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600)
"""Seconds that people write."""

FLOORS = {"memory": 32 << 20, "processes": 2, "disk": 4 << 20, "output": 64 << 10}
"""Of each limit that is divided: with less, no program at all would run."""

UNITS = (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10))


def suggested_timeout(slowest: float) -> int:
    """Seconds for each test: ten times the slowest one, and more, as others' machines are slower and busier."""
    wanted = GENEROUS * slowest
    return next((step for step in STEPS if step >= wanted), math.ceil(wanted / STEPS[-1]) * STEPS[-1])


def seconds(test: TestResult) -> float:
    return test.duration_ms / 1000


@dataclass(frozen=True, slots=True)
class TimeHeadroom:
    """Of a checkpoint's reference, in seconds, beside what it may take."""

    tests: tuple[TestResult, ...]
    """What passed within the checkpoint's timeout; a test with a marker of its own has its own."""

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
        return max(self.tests, key=seconds, default=None)

    @property
    def suggested(self) -> int | None:
        return suggested_timeout(seconds(self.slowest)) if self.slowest else None


def divided(environment: EnvironmentSpec, names: Iterable[str]) -> EnvironmentSpec:
    """The same environment with a quarter of these limits."""
    limits = environment.limits
    smaller = {name: tried_with(limits, name) for name in names}
    return environment.model_copy(update={"limits": limits.model_copy(update=smaller)})


def divisible(limits: Limits) -> tuple[str, ...]:
    """Those of which less than the whole can be tried."""
    return tuple(name for name in FLOORS if tried_with(limits, name) < getattr(limits, name))


def tried_with(limits: Limits, name: str) -> int:
    return a_quarter(getattr(limits, name), FLOORS[name])


def about(limits: Limits, name: str) -> str:
    """The limit, and what was tried instead of it."""
    tried = f"tried {amount(name, tried_with(limits, name))}" if name in divisible(limits) else "not tried: the floor"
    return f"{name} {amount(name, getattr(limits, name))} ({tried})"


def a_quarter(limit: int, floor: int) -> int:
    return min(limit, max(limit // FACTOR, floor))


def amount(name: str, value: int) -> str:
    """As an environment file would say it."""
    if name == "processes":
        return str(value)
    unit, size = next((one for one in UNITS if value >= one[1]), ("", 1))
    return f"{value / size:.3g}{unit}" if value < 1000 * size else f"{value // size}{unit}"
