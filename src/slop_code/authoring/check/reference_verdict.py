"""Soundness of a reference, which most steps require."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import first_line
from slop_code.authoring.check.findings import Location
from slop_code.errors import UsageError
from slop_code.evaluation.selection import checkpoint_of, files_in

if TYPE_CHECKING:
    from slop_code.authoring.check.workbench import Workbench
    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults


def location_of_checkpoint(problem: ProblemConfig, checkpoint: str) -> Location:
    """The first line of the checkpoint's tests, where a comment can allow a finding."""
    files = files_in(problem.path / "tests")
    own = [file for file in files if checkpoint_of(file.name, problem.checkpoints) == checkpoint]
    return Location(f"tests/{own[0]}", 1) if own else Location("tests")


def sound_reference(bench: Workbench, checkpoint: CheckpointConfig) -> CorrectnessResults:
    """The results of the reference; a UsageError where it is not sound."""
    results = bench.reference(checkpoint)
    if fault := reference_fault(checkpoint.name, results):
        raise UsageError(fault)
    return results


def reference_fault(checkpoint: str, results: CorrectnessResults) -> str | None:
    """The reason why the reference is not sound; quarantined tests do not count."""
    if reason := results.infrastructure_failure_reason:
        return f"no verdict on the reference of {checkpoint}: {first_line(reason)}; fix that first"
    counted = [test for test in results.tests if not test.quarantined]
    failures = sum(test.status != "passed" for test in counted)
    if failures:
        return f"{failures} of {len(counted)} tests fail with the reference of {checkpoint}; fix that first"
    return None
