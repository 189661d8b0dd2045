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
    config = problem.config
    return {
        "name": problem.name,
        "path": str(config.path),
        "version": config.version,
        "description": config.description,
        "author": config.author,
        "difficulty": config.difficulty,
        "state": problem.state,
        "environment": problem.environment.name,
        "entry_file": problem.entry_file,
        "checkpoints": [_checkpoint_json(checkpoint) for checkpoint in problem.checkpoints],
        "assets": [asdict(asset) for asset in problem.assets],
        "markers": config.custom_groups,
        "test_dependencies": dict(problem.dependencies),
        "quarantined": list(problem.quarantined),
        "warnings": list(config.warnings),
    }


def _checkpoint_json(checkpoint: CheckpointOverview) -> dict[str, Any]:
    config = checkpoint.config
    reference = checkpoint.measured and {
        "seconds": round(checkpoint.measured.seconds, 3),
        "slowest": [
            {"test": name, "seconds": round(taken, 3)} for name, taken in checkpoint.measured.slowest(MAX_SLOWEST)
        ],
    }
    return {
        "name": config.name,
        "order": config.order,
        "state": config.state,
        "timeout": config.timeout,
        "session_timeout": config.session_timeout,
        "specification_bytes": checkpoint.specification,
        "solution": checkpoint.solution,
        "tests": None if checkpoint.tests is None else dict(checkpoint.tests),
        "trouble": checkpoint.error,
        "reference": reference,
    }
