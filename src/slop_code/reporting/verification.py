"""What checking stored results against their raw reports found, in lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.evaluation.policy import PassPolicy
from slop_code.reporting.terminal import many, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.evaluation.verify import Finding, Verification

SHOWN_FINDINGS = 20
CONTEXT = 30
SHORT = 100


def verified(place: str, found: Verification) -> Iterator[tuple[str, str]]:
    """Lines with their styles: one where all agrees, and what could not be checked."""
    stored = found.stored
    if not found.findings:
        groups = sum(total > 0 for total in stored.total_counts.values())
        counted = f"{many(len(stored.tests), 'test')}, {many(groups, 'group')}, {len(PassPolicy)} policies"
        yield f"{one_line(place)}: verified: {counted} from {one_line(stored.evidence)}", "green"
    else:
        yield f"{one_line(place)}: DIFFERS from its raw reports: {many(len(found.findings), 'finding')}", "bold red"
    for finding in found.findings[:SHOWN_FINDINGS]:
        yield f"  {in_words(finding)}", ""
    if len(found.findings) > SHOWN_FINDINGS:
        yield f"  ... and {len(found.findings) - SHOWN_FINDINGS} more; --json has them all", "dim"
    for what in found.unchecked:
        yield f"  not checked: {one_line(what)}", "dim"


def in_words(finding: Finding) -> str:
    stored, raw = from_where_they_differ(finding.stored, finding.raw)
    what = "" if finding.kind == "test" or finding.kind in finding.place else f" {finding.kind}"
    if finding.kind == "raw report":
        return f"{one_line(finding.place)} {one_line(raw)}"
    says = "the problem has" if finding.kind == "digest" else "the raw reports say"
    return f"{one_line(finding.place)}{what}: stored {one_line(stored)}, {says} {one_line(raw)}"


def from_where_they_differ(one: str, other: str) -> tuple[str, str]:
    """Long texts that begin alike are shown from shortly before their first difference."""
    if max(len(one), len(other)) <= SHORT:
        return one, other
    pairs = enumerate(zip(one, other, strict=False))
    first = next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
    start = first - CONTEXT
    return (one, other) if start <= 0 else (f"...{one[start:]}", f"...{other[start:]}")
