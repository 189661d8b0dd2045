"""What the pairs of an evaluation have found, as one result says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.evaluation import pairs
from slop_code.evaluation.grading import grade
from slop_code.evaluation.reports.raw_test import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slop_code.evaluation.evidence import Source
    from slop_code.evaluation.groups import GroupType
    from slop_code.evaluation.pairs import Part
    from slop_code.evaluation.report import TestResult
    from slop_code.evaluation.roster import Roster

REASON_LIMIT = 16 << 10


@dataclass(frozen=True, slots=True)
class Conclusion:
    tests: list[TestResult]
    exit_code: int
    reason: str | None
    """Why there is no verdict."""

    deselected: int
    source: Source


def conclude(
    parts: Sequence[Part],
    roster: Roster,
    *,
    ordered: Sequence[str],
    current: str,
    custom: Mapping[str, GroupType],
) -> Conclusion:
    """An evaluation ends with this, and whoever checks a stored result begins with it."""
    graded = [
        grade(
            part.own,
            pairs.own_evidence(part, roster),
            ordered=ordered,
            current=current,
            custom=custom,
            missing=part.told or "left no result",
        )
        for part in parts
    ]
    reason = pairs.reason_of(parts)
    return Conclusion(
        tests=pairs.in_order(roster, [test for tests in graded for test in tests]),
        exit_code=pairs.exit_code_of(parts),
        reason=None if reason is None else visible(reason, REASON_LIMIT),
        deselected=pairs.deselected_of(parts, roster),
        source=pairs.source_of(parts),
    )
