"""Explanation and metadata of a score: a result in the words and the fields of other evaluation systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slop_code.reporting.failures.failure_causes import checkpoint_cause, not_passed_tests, reason_of
from slop_code.reporting.text import file_safe

if TYPE_CHECKING:
    from slop_code.evaluation.report import CorrectnessResults

MAX_LISTED = 50
"""Tests that did not pass."""


def score_explanation(results: CorrectnessResults) -> str:
    """The number of tests that passed, then those that did not, with their groups and reasons."""
    failed = not_passed_tests(results)
    lines = [f"{len(results.tests) - len(failed)} of {len(results.tests)} tests passed"]
    cause = checkpoint_cause(results)
    if cause is not None:
        lines.append(cause.text)
        failed = [test for test in failed if test.nodeid not in cause.explained]
    lines += [f"- {test.nodeid} ({test.group_type}): {reason_of(test)}" for test in failed[:MAX_LISTED]]
    if len(failed) > MAX_LISTED:
        lines.append(f"- {len(failed) - MAX_LISTED} more")
    return "\n".join(map(file_safe, lines))


def score_metadata(results: CorrectnessResults) -> dict[str, Any]:
    """Facts with which a reader compares two scores, or repeats an evaluation."""
    kept = {"pass_counts", "total_counts", "setup_failure", "isolation", "provenance", "warnings", "duration"}
    return {"problem": results.problem_name, **results.model_dump(mode="json", include=kept)}
