"""Results of runs, written as an evaluation would leave them, by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slop_code.evaluation.report import CorrectnessResults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

STATUSES = {"+": "passed", "-": "failed", "s": "skipped", "e": "error"}


def write_run(
    folder: Path,
    problems: Mapping[str, Sequence[str]],
    *,
    submission: str | None = None,
    names: Sequence[str] = (),
    text: str = "E   assert 1 == 2",
    **keys: Any,
) -> Path:
    """`{"words": ["+-", "!"]}`: at each checkpoint a mark for each test, or "!" for an infrastructure failure.

    Runs with the same `submission` hold the same; `text`: what is told of a test that did not pass.
    """
    for problem, checkpoints in problems.items():
        for number, marks in enumerate(checkpoints, start=1):
            failed = marks == "!"
            told = [_test(place, mark, names, text) for place, mark in enumerate("" if failed else marks)]
            results = CorrectnessResults.model_validate({
                "problem_name": problem,
                "checkpoint_name": f"checkpoint_{number}",
                "duration": 1.5,
                "tests": told,
                "pytest_exit_code": 1,
                "infrastructure_failure_reason": f"killed: {text}" if failed else None,
                "isolation": {},
                "phases": {"tests": 0.1},
                "provenance": {
                    "digests": {
                        "submission": submission or str(folder), "tests": "t", "config": "c", "environment": "e",
                    },
                    "evaluation_version": "1", "test_dependencies": {}, "python": "3", "platform": "x",
                    "slop_code": "1", "command": [], "pytest_args": [],
                },
                "evidence": "stream",
                **keys,
            })  # fmt: skip
            results.save(folder / problem / f"checkpoint_{number}" / "evaluation.json")
    return folder


def _test(place: int, mark: str, names: Sequence[str], text: str) -> dict[str, Any]:
    told = {} if mark == "+" else {"failure_message": text, "calls": [f"python main.py {text}"], "output": text}
    return {
        "id": names[place] if place < len(names) else f"test_{place}", "checkpoint": "checkpoint_1",
        "group_type": "Core", "status": STATUSES[mark], "duration_ms": 1.0, "file_path": "test_checkpoint_1.py",
        "markers": [], **told,
    }  # fmt: skip
