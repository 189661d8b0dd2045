"""State of one evaluation: the values of its steps, the time that each phase took, and the result of them."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slop_code.errors import InfrastructureError
from slop_code.evaluation.evidence import weakest_isolation
from slop_code.evaluation.provenance import provenance_of, refused_handovers, unenforced_limits, warnings_for
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.roster import Roster

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from slop_code.evaluation.context import EvaluationContext
    from slop_code.evaluation.evidence import Evidence
    from slop_code.evaluation.grading import Grade
    from slop_code.evaluation.report import Provenance
    from slop_code.evaluation.staging import Staged
    from slop_code.execution.submission import SubmissionTree


class Stopwatch:
    def __init__(self) -> None:
        self.phases: dict[str, float] = {"prepare": 0.0, "setup": 0.0, "tests": 0.0, "parse": 0.0}
        self.began = self.last = time.monotonic()

    def lap(self, phase: str) -> None:
        now = time.monotonic()
        self.phases[phase] += now - self.last
        self.last = now


@dataclass(slots=True)
class EvaluationState:
    """Intermediate values of an evaluation. After an infrastructure failure, the result has those that are known."""

    context: EvaluationContext
    submission: Path
    arguments: list[str]
    tree: Callable[[], SubmissionTree]
    """Waits for the digest of the submission before the tests."""

    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    image: str | None = None
    python: str | None = None
    """Version of the submission's Python."""

    command: list[str] = field(default_factory=list)
    staged: Staged | None = None
    roster: Roster = field(default_factory=lambda: Roster(()))
    evidence: list[Evidence] = field(default_factory=list)
    repeats: list[Evidence] = field(default_factory=list)
    """Those of starved tests that ran again, alone."""

    serial_reason: str | None = None
    """Why one pair runs everything although config.yaml has `parallel: auto`."""

    permanent: bool = False
    """Another attempt would fail in the same way."""

    def keep_inputs(self, output: Path | None) -> None:
        """Writes the inputs of the tests next to their evidence."""
        if output is not None and self.staged is not None:
            self.staged.inputs.save(output)

    def results(self, graded: Grade) -> CorrectnessResults:
        tree = None
        with contextlib.suppress(InfrastructureError):  # already reported as the reason, unless another came first
            tree = self.tree()
        isolation = self._isolation()
        warnings = warnings_for(self.context, self.submission, self.staged, tree, self.python)
        warnings += unenforced_limits(self.context.environment, isolation)
        results = CorrectnessResults(
            problem_name=self.context.problem.name,
            checkpoint_name=self.context.checkpoint.name,
            duration=time.monotonic() - self.stopwatch.began,
            tests=graded.tests,
            pytest_exit_code=graded.exit_code,
            infrastructure_failure_reason=graded.infrastructure_failure_reason,
            setup_failure=graded.setup_failure,
            missing_entry_file=self.context.missing_entry_file(self.submission),
            isolation=isolation,
            deselected=graded.deselected,
            phases=self.stopwatch.phases,
            provenance=self._provenance(tree),
            evidence=graded.source,
            warnings=[*warnings, *refused_handovers(graded.tests)],
        )
        return results.with_failure_kind(permanent=self.permanent or results.selects_none)

    def _isolation(self) -> dict[str, Any]:
        isolation = weakest_isolation(self.evidence, self.repeats)
        return {**isolation, "pairs_reason": self.serial_reason} if isolation and self.serial_reason else isolation

    def _provenance(self, tree: SubmissionTree | None) -> Provenance:
        digests = {
            "submission": tree.digest if tree else None,
            "tests": self.staged.digest if self.staged else None,
            "image": self.image,
            "python": self.python,
        }
        return provenance_of(self.context, digests, command=self.command, pytest_args=self.arguments)
