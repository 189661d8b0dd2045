"""Results as an evaluation would give them, by the few things that a step looks at."""

from __future__ import annotations

from typing import Any

from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.report import CorrectnessResults, Digests, Provenance, TestResult

PROVENANCE = Provenance(
    digests=Digests(config="c", environment="d"),
    test_dependencies={},
    python="3.12.1",
    platform="linux",
    slop_code="0.1.0",
    command=[],
    pytest_args=[],
)
GROUPS = {"C": GroupType.CORE, "F": GroupType.FUNCTIONALITY, "E": GroupType.ERROR, "R": GroupType.REGRESSION}


def case(name: str, status: str = "passed", group: str = "C", seconds: float = 0.1, **more: Any) -> TestResult:
    return TestResult(
        **{
            "id": name,
            "checkpoint": "checkpoint_1",
            "group_type": GROUPS[group],
            "status": status,
            "duration_ms": 1000 * seconds,
            "file_path": "test_checkpoint_1.py",
            "markers": [],
            **more,
        }
    )


def judged(*tests: TestResult, reason: str | None = None, whole: float = 1.0) -> CorrectnessResults:
    return CorrectnessResults(
        problem_name="shout",
        checkpoint_name="checkpoint_1",
        duration=2.0,
        tests=list(tests),
        pytest_exit_code=1,
        infrastructure_failure_reason=reason,
        isolation={},
        phases={"prepare": 0.1, "setup": 0.2, "tests": whole, "parse": 0.1},
        provenance=PROVENANCE,
        evidence="json-report",
    )
