"""Which group a test counts in."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slop_code.evaluation.roster import Roster


class GroupType(StrEnum):
    CORE = "Core"
    FUNCTIONALITY = "Functionality"
    ERROR = "Error"
    REGRESSION = "Regression"


BUILTIN_MARKERS: dict[str, tuple[str, GroupType]] = {
    "error": ("error-handling / edge-case tests", GroupType.ERROR),
    "functionality": ("non-core / nice-to-have tests", GroupType.FUNCTIONALITY),
    "regression": ("regression tests from prior checkpoints", GroupType.REGRESSION),
}


QUARANTINED = "quarantined"
"""The marker of a test that the problem's ledger of flaky tests covers; of no other, whatever its file says."""

PYTEST_MARKERS = ("filterwarnings", "parametrize", "skip", "skipif", "timeout", "usefixtures", "xfail")


def group_for(
    test_checkpoint: str,
    markers: Iterable[str],
    current_checkpoint: str,
    custom: Mapping[str, GroupType],
) -> GroupType:
    """The six rules, in their order; among custom markers the first of `markers` decides."""
    names = list(markers)
    if test_checkpoint != current_checkpoint:
        return GroupType.REGRESSION
    if "error" in names:
        return GroupType.ERROR
    if "regression" in names:
        return GroupType.REGRESSION
    for name in names:
        if name in custom:
            return custom[name]
    if "functionality" in names:
        return GroupType.FUNCTIONALITY
    return GroupType.CORE


def misspelt_markers(roster: Roster, custom: Iterable[str]) -> list[str]:
    """Markers that are nearly one that decides a group: such a test counts elsewhere than it was meant to."""
    known = [*BUILTIN_MARKERS, *custom]
    strange = {marker for entry in roster.entries for marker in entry.markers} - {*known, QUARANTINED, *PYTEST_MARKERS}
    if not strange:
        return []
    import difflib

    found = []
    for marker in sorted(strange):
        for meant in difflib.get_close_matches(marker, known, n=1):
            found.append(f"marker {marker!r} decides no group; was {meant!r} meant?")
    return found
