"""The references that most steps build on: where their tests are, and whether they are sound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import first_line, in_line
from slop_code.authoring.check.findings import Location
from slop_code.errors import UsageError
from slop_code.evaluation.selection import checkpoint_of, files_in

if TYPE_CHECKING:
    from slop_code.authoring.check.workbench import Workbench
    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults


def location_of_checkpoint(problem: ProblemConfig, checkpoint: str) -> Location:
    """The top of the first file with tests of that checkpoint: a comment there can let a finding pass."""
    files = files_in(problem.path / "tests")
    own = [file for file in files if checkpoint_of(file.name, problem.checkpoints) == checkpoint]
    return Location(f"tests/{own[0]}", 1) if own else Location("tests")


def verdict_on(bench: Workbench, checkpoint: CheckpointConfig) -> CorrectnessResults:
    """For steps that build on a sound reference; a UsageError where it is not."""
    results = bench.reference(checkpoint)
    if fault := unsound(checkpoint.name, results):
        raise UsageError(fault)
    return results


def unsound(checkpoint: str, results: CorrectnessResults) -> str | None:
    """Why nothing can be built on the reference; what is quarantined does not count."""
    if reason := results.infrastructure_failure_reason:
        return f"no verdict on the reference of {checkpoint}: {in_line(first_line(reason))}; fix that first"
    counted = [test for test in results.tests if not test.quarantined]
    lost = sum(test.status != "passed" for test in counted)
    if lost:
        return f"{lost} of {len(counted)} tests fail with the reference of {checkpoint}; fix that first"
    return None
