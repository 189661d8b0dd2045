"""JSON of `problems ls` and `problems show`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from slop_code.authoring.problem_overview import MAX_SLOWEST, UnloadableProblem

if TYPE_CHECKING:
    from slop_code.authoring.problem_overview import CheckpointOverview, ProblemOverview


def as_json(problem: ProblemOverview | UnloadableProblem) -> dict[str, Any]:
    if isinstance(problem, UnloadableProblem):
        return {"name": problem.name, "path": str(problem.path.absolute()), "broken": problem.reason}
    return {
        "name": problem.name,
        "path": str(problem.path),
        "version": problem.version,
        "description": problem.description,
        "author": problem.author,
        "difficulty": problem.difficulty,
        "state": problem.state,
        "environment": problem.environment,
        "entry_file": problem.entry_file,
        "checkpoints": [_checkpoint_json(checkpoint) for checkpoint in problem.checkpoints],
        "assets": [asdict(asset) for asset in problem.assets],
        "markers": dict(problem.markers),
        "test_dependencies": dict(problem.dependencies),
        "quarantined": list(problem.quarantined),
        "warnings": list(problem.warnings),
    }


def _checkpoint_json(checkpoint: CheckpointOverview) -> dict[str, Any]:
    reference = checkpoint.measured and {
        "seconds": round(checkpoint.measured.seconds, 3),
        "slowest": [
            {"test": name, "seconds": round(taken, 3)} for name, taken in checkpoint.measured.slowest(MAX_SLOWEST)
        ],
    }
    return {
        "name": checkpoint.name,
        "order": checkpoint.order,
        "state": checkpoint.state,
        "timeout": checkpoint.timeout,
        "session_timeout": checkpoint.session_timeout,
        "specification_bytes": checkpoint.specification,
        "solution": checkpoint.solution,
        "tests": None if checkpoint.tests is None else dict(checkpoint.tests),
        "trouble": checkpoint.error,
        "reference": reference,
    }
