"""Results as an evaluation would give them, by the few things that a step looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slop_code.evaluation.groups import GroupType
from tests import factories

if TYPE_CHECKING:
    from slop_code.evaluation.report import CorrectnessResults, TestResult

GROUPS = {"C": GroupType.CORE, "F": GroupType.FUNCTIONALITY, "E": GroupType.ERROR, "R": GroupType.REGRESSION}


def case(name: str, status: str = "passed", group: str = "C", seconds: float = 0.1, **fields: Any) -> TestResult:
    return factories.case(name, status, **{"group_type": GROUPS[group], "duration_ms": 1000 * seconds, **fields})


def judged(*tests: TestResult, reason: str | None = None, whole: float = 1.0) -> CorrectnessResults:
    return factories.result(
        tests,
        problem_name="shout",
        pytest_exit_code=1,
        infrastructure_failure_reason=reason,
        phases={"prepare": 0.1, "setup": 0.2, "tests": whole, "parse": 0.1},
    )
