"""Groups of tests, by their checkpoint and their markers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from slop_code._arguments import check_texts, wrong_argument
from slop_code._suggestions import did_you_mean
from slop_code.errors import UsageError
from slop_code.evaluation.selection import home_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
"""Marker of the tests that the problem's quarantine covers; on other tests it is removed."""

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


def checked_group_for(
    test_checkpoint: Any, markers: Any, current_checkpoint: Any, custom: Mapping[str, GroupType], ordered: Sequence[str]
) -> GroupType:
    """`group_for`, with arguments of a caller. `ordered` has the problem's checkpoints."""
    home = _checked_checkpoint("test_checkpoint", test_checkpoint, ordered)
    current = _checked_checkpoint("current_checkpoint", current_checkpoint, ordered)
    return group_for(home, check_texts("markers", markers, "a list of marker names"), current, custom)


def group_of_ctrf_test(test: Mapping[str, Any], checkpoint_name: Any, custom: Any, ordered: Sequence[str]) -> GroupType:
    """`custom` maps markers to their configuration or to their group. `ordered` has the problem's checkpoints."""
    path, tags = test.get("filePath"), test.get("tags")
    if not isinstance(path, str) or not path:
        raise UsageError("a CTRF test without filePath has no group: its file says which checkpoint it belongs to")
    current = _checked_checkpoint("checkpoint_name", checkpoint_name, ordered)
    names = [] if tags is None else check_texts("tags", tags, "a list of marker names")
    return group_for(
        home_of(path, ordered), [name.partition("::")[0] for name in names], current, _groups_of_markers(custom)
    )


def _checked_checkpoint(name: str, value: object, ordered: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in ordered:
        raise wrong_argument(name, value, f"one of {', '.join(ordered)}")
    return value


def _groups_of_markers(custom: object) -> dict[str, GroupType]:
    expected = "a mapping of marker names to their configuration or their group"
    if not isinstance(custom, Mapping):
        raise wrong_argument("custom_markers", custom, expected)
    groups: dict[str, GroupType] = {}
    for name, marker in custom.items():
        group = getattr(marker, "group", marker)
        if not isinstance(name, str) or not isinstance(group, str) or group not in [*GroupType]:
            raise wrong_argument("custom_markers", custom, f"{expected} ({', '.join(GroupType)})")
        groups[name] = GroupType(group)
    return groups


def misspelt_markers(roster: Roster, custom: Iterable[str]) -> list[str]:
    """Warnings about unknown markers that resemble a marker with a group: the test may count in a wrong group."""
    known = [*BUILTIN_MARKERS, *custom]
    unknown = {marker for entry in roster.entries for marker in entry.markers} - {*known, QUARANTINED, *PYTEST_MARKERS}
    if not unknown:
        return []
    meant = {marker: did_you_mean(marker, known) for marker in sorted(unknown)}
    return [f"marker {marker!r} decides no group{ending}" for marker, ending in meant.items() if ending]
