"""What checking stored results against their raw reports found, in lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.evaluation.policy import PassPolicy
from slop_code.reporting.text import one_line, plural
from slop_code.verification.discrepancy import CONTRADICTION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.reporting.terminal import StyledLine
    from slop_code.verification.discrepancy import Finding
    from slop_code.verification.verify import Verification

SHOWN_FINDINGS = 20
CONTEXT = 30
SHORT = 100
NEVER_CHECKED = "digests of environment and image, isolation, versions, times of the whole: no raw report has them"
_SAYS = {
    "digest": "the problem has",
    "snapshot": "the snapshot is not what was evaluated, it has",
    "summary": "checkpoint_results.jsonl says",
}
"""Who says otherwise, by the kind of a finding; else the raw reports do."""


def verified(place: str, found: Verification) -> Iterator[StyledLine]:
    """Lines with their styles: one where all agrees, and what could not be checked."""
    stored = found.stored
    if not found.findings:
        groups = sum(total > 0 for total in stored.total_counts.values())
        counted = f"{plural(len(stored.tests), 'test')}, {plural(groups, 'group')}, {len(PassPolicy)} policies"
        too = ", and the problem's tests and config" if found.with_problem else ""
        yield f"{one_line(place)}: verified: {counted} from {one_line(stored.evidence)}{too}", "green"
    else:
        yield f"{one_line(place)}: DIFFERS from its raw reports: {plural(len(found.findings), 'finding')}", "bold red"
    for finding in found.findings[:SHOWN_FINDINGS]:
        yield f"  {finding_text(finding)}", ""
    if len(found.findings) > SHOWN_FINDINGS:
        yield f"  ... and {len(found.findings) - SHOWN_FINDINGS} more; --json has them all", "dim"
    for what in found.unchecked:
        yield f"  not checked: {one_line(what)}", "dim"


def unverified(place: str, why: str) -> Iterator[StyledLine]:
    yield f"{one_line(place)}: cannot be verified: {one_line(why)}", "bold red"


def in_all(verified: int, count: int) -> Iterator[StyledLine]:
    """The last lines, for all results together."""
    if count > 1:
        yield f"{verified} of {count} results verified", "green" if verified == count else "bold red"
    if verified:
        yield f"not checked: {NEVER_CHECKED}", "dim"


def finding_text(finding: Finding) -> str:
    stored, raw = from_where_they_differ(finding.stored, finding.raw)
    place = one_line(finding.place)
    if finding.kind == "raw report":
        return f"{place} {one_line(raw)}"
    if finding.kind == CONTRADICTION:
        return f"{place}: {one_line(stored)}, but {one_line(raw)}"
    what = "" if finding.kind == "test" or finding.kind in (*_SAYS, *finding.place.split(".")) else f" {finding.kind}"
    return f"{place}{what}: stored {one_line(stored)}, {_SAYS.get(finding.kind, 'the raw reports say')} {one_line(raw)}"


def from_where_they_differ(one: str, other: str) -> StyledLine:
    """Long texts that begin alike are shown from shortly before their first difference."""
    if max(len(one), len(other)) <= SHORT:
        return one, other
    pairs = enumerate(zip(one, other, strict=False))
    first = next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
    start = first - CONTEXT
    return (one, other) if start <= 0 else (f"...{one[start:]}", f"...{other[start:]}")
