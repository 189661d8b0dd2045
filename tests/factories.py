"""Results, problems and submissions for tests, with a default for everything that a test does not name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.report import CorrectnessResults, TestResult
from slop_code.execution import EnvironmentSpec
from slop_code.runs.jobs.job_records import Submission

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

STATUSES = {"+": "passed", "-": "failed", "s": "skipped", "e": "error"}
FILE = "test_checkpoint_1.py"
DIGESTS = {"submission": "5ub", "tests": "7e5", "config": "c0f", "environment": "e0v"}
LOCAL = EnvironmentSpec.model_validate({"type": "local", "name": "local"})


def case(name: str = "test_a", status: str = "passed", **fields: Any) -> TestResult:
    plain = {"checkpoint": "checkpoint_1", "group_type": "Core", "duration_ms": 1.0, "file_path": FILE, "markers": []}
    return TestResult.model_validate({**plain, "id": name, "status": status, **fields})


def cases(tests: str | Mapping[str, str] | Iterable[TestResult | dict[str, Any]]) -> list[TestResult]:
    """A mark for each test (`"+-s"`), a status for each name (`{"test_a": "passed"}`), or the tests themselves."""
    if isinstance(tests, str):
        tests = {f"test_{number}": STATUSES[mark] for number, mark in enumerate(tests)}
    if isinstance(tests, Mapping):
        return [case(name, status) for name, status in tests.items()]
    return [test if isinstance(test, TestResult) else case(**{"name": test["id"], **test}) for test in tests]


def result(
    tests: str | Mapping[str, str] | Iterable[TestResult | dict[str, Any]] = "+",
    *,
    provenance: Mapping[str, Any] | None = None,
    digests: Mapping[str, str] | None = None,
    **fields: Any,
) -> CorrectnessResults:
    """`provenance` and `digests` are keys over the default ones, `fields` those of the result itself."""
    made = {
        "digests": {**DIGESTS, **(digests or {})}, "evaluation_version": "1-abc", "python": "3.12.1",
        "platform": "linux", "slop_code": "0.1.0", **(provenance or {}),
    }  # fmt: skip
    plain = {
        "problem_name": "words", "checkpoint_name": "checkpoint_1", "duration": 1.5, "pytest_exit_code": 0,
        "phases": {"tests": 1.0}, "evidence": "json-report",
    }  # fmt: skip
    return CorrectnessResults.model_validate({**plain, "tests": cases(tests), "provenance": made, **fields})


def problem(name: str = "words", checkpoints: int = 3, **fields: Any) -> ProblemConfig:
    """Without a folder."""
    plain = {"name": name, "version": "1", "description": "", "tags": [], "entry_file": "main.py"}
    names = {f"checkpoint_{number}": {} for number in range(1, checkpoints + 1)}
    return ProblemConfig.model_validate({**plain, "checkpoints": names, **fields})


def counts(*values: int) -> dict[GroupType, int]:
    """One for each group: core, functionality, error, regression."""
    return dict(zip(GroupType, values, strict=True))


def statuses(results: CorrectnessResults) -> dict[str, str]:
    return {f"{test.file_path}::{test.id}": test.status for test in results.tests}


def statuses_by_id(results: CorrectnessResults) -> dict[str, str]:
    """For tests of one file."""
    return {test.id: test.status for test in results.tests}


def submission(number: int = 1, *, run: str = "run", name: str = "words", path: Path | None = None) -> Submission:
    """One of a checkpoint, by its number, of a problem with 30 checkpoints."""
    config = problem(name, 30)
    return Submission(
        problem=config,
        checkpoint=config.checkpoint(number),
        environment=LOCAL,
        path=path or Path(run, str(number)),
        run=run,
    )


def write_run(
    folder: Path,
    problems: Mapping[str, Sequence[str]],
    *,
    submission: str | None = None,
    names: Sequence[str] = (),
    text: str = "E   assert 1 == 2",
    **fields: Any,
) -> Path:
    """`{"words": ["+-", "!"]}`: at each checkpoint a mark for each test, or "!" for an infrastructure failure.

    Runs with the same `submission` have the same digest of it; `text` is the message of a test that did not pass.
    """
    for name, checkpoints in problems.items():
        for number, marks in enumerate(checkpoints, start=1):
            failed = marks == "!"
            tests = [
                case(
                    names[index] if index < len(names) else f"test_{index}",
                    STATUSES[mark],
                    **(
                        {}
                        if mark == "+"
                        else {"failure_message": text, "calls": [f"python main.py {text}"], "output": text}
                    ),
                )
                for index, mark in enumerate("" if failed else marks)
            ]
            result(
                tests,
                digests={"submission": submission or str(folder)},
                **{
                    "problem_name": name, "checkpoint_name": f"checkpoint_{number}", "pytest_exit_code": 1,
                    "infrastructure_failure_reason": f"killed: {text}" if failed else None, **fields,
                },
            ).save(folder / name / f"checkpoint_{number}" / "evaluation.json")  # fmt: skip
    return folder
