"""Reasons of checkpoints that did not pass, from their stored results."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from slop_code.errors import ResultError
from slop_code.evaluation.report import RESULT_FILE, CorrectnessResults
from slop_code.reporting.failures.failure_lines import failure_summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.policy import Policy
    from slop_code.runs.checkpoint_lines import CheckpointLine

MAX_READ_RESULTS = 100
"""Reading all results of a large run takes a while."""


def not_passed(lines: Sequence[CheckpointLine], policy: Policy) -> list[CheckpointLine]:
    """Checkpoints with a verdict that is not a pass."""
    return [line for line in lines if line.state == "evaluated" and not line.passes(policy)]


def checkpoint_reasons(
    lines: Sequence[CheckpointLine], policy: Policy, folders: Mapping[str, Path | None]
) -> dict[str, str]:
    """By the labels of the checkpoints, as the folders of the results are. A result that cannot be read has none."""
    reasons = {}
    for line in not_passed(lines, policy)[:MAX_READ_RESULTS]:
        if folder := folders.get(line.label):
            with contextlib.suppress(ResultError):
                reasons[line.label] = failure_summary(CorrectnessResults.load(folder / RESULT_FILE))
    return reasons
