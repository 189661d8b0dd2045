"""What `problems ls` and `show` tell, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slop_code.authoring.problem_overview import SLOWEST, UnloadableProblem

if TYPE_CHECKING:
    from slop_code.authoring.problem_overview import CheckpointOverview, ProblemOverview


def as_json(found: ProblemOverview | UnloadableProblem) -> dict[str, Any]:
    if isinstance(found, UnloadableProblem):
        return {"name": found.name, "path": str(found.path.absolute()), "broken": found.reason}
    return {
        "name": found.name,
        "path": str(found.path),
        "version": found.version,
        "description": found.description,
        "author": found.author,
        "difficulty": found.difficulty,
        "state": found.state,
        "environment": found.environment,
        "entry_file": found.entry_file,
        "checkpoints": [_checkpoint_json(one) for one in found.checkpoints],
        "assets": [
            {"name": asset.name, "path": asset.path, "files": asset.files, "bytes": asset.bytes}
            for asset in found.assets
        ],
        "markers": dict(found.markers),
        "test_dependencies": dict(found.dependencies),
        "quarantined": list(found.quarantined),
        "warnings": list(found.warnings),
    }


def _checkpoint_json(one: CheckpointOverview) -> dict[str, Any]:
    reference = one.measured and {
        "seconds": round(one.measured.seconds, 3),
        "slowest": [{"test": name, "seconds": round(taken, 3)} for name, taken in one.measured.slowest(SLOWEST)],
    }
    return {
        "name": one.name,
        "order": one.order,
        "state": one.state,
        "timeout": one.timeout,
        "session_timeout": one.session_timeout,
        "specification_bytes": one.specification,
        "solution": one.solution,
        "tests": None if one.tests is None else dict(one.tests),
        "trouble": one.trouble,
        "reference": reference,
    }
