"""Lines about stored results that were checked against their raw reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.evaluation.policy import PassPolicy
from slop_code.reporting.text import JSON_HAS_ALL, more_line, one_line, plural
from slop_code.verification.contradictions import CONTRADICTION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.reporting.terminal import StyledLine
    from slop_code.verification.contradictions import Discrepancy
    from slop_code.verification.verify import Verification

SHOWN_FINDINGS = 20
SHOWN_CONTEXT = 30
MAX_SHORT_TEXT = 100
NEVER_CHECKED = "digests of environment and image, isolation, versions, times of the whole: no raw report has them"
_SAYS = {
    "digest": "the problem has",
    "quarantine": "by tests/flaky.json of the problem it is",
    "snapshot": "the snapshot is not what was evaluated, it has",
    "summary": "checkpoint_results.jsonl says",
}
"""Source of the other value, by the kind of a finding; otherwise it is in the raw reports."""


def verified(path: str, verification: Verification) -> Iterator[StyledLine]:
    """One line where everything agrees, and a line for each part that could not be checked."""
    stored = verification.stored
    if not verification.findings:
        groups = sum(total > 0 for total in stored.total_counts.values())
        counted = f"{plural(len(stored.tests), 'test')}, {plural(groups, 'group')}, {len(PassPolicy)} policies"
        too = ", and the problem's tests and config" if verification.with_problem else ""
        yield f"{one_line(path)}: verified: {counted} from {one_line(stored.evidence)}{too}", "green"
    else:
        yield (
            f"{one_line(path)}: DIFFERS from its raw reports: {plural(len(verification.findings), 'finding')}",
            "bold red",
        )
    for finding in verification.findings[:SHOWN_FINDINGS]:
        yield f"  {finding_text(finding)}", ""
    yield from more_line(verification.findings, SHOWN_FINDINGS, JSON_HAS_ALL, indent="  ")
    for what in verification.unchecked:
        yield f"  not checked: {one_line(what)}", "dim"


def unverified(path: str, reason: str) -> Iterator[StyledLine]:
    yield f"{one_line(path)}: cannot be verified: {one_line(reason)}", "bold red"


def verification_totals(verified: int, count: int) -> Iterator[StyledLine]:
    """The last lines, about all results together."""
    if count > 1:
        yield f"{verified} of {count} results verified", "green" if verified == count else "bold red"
    if verified:
        yield f"not checked: {NEVER_CHECKED}", "dim"


def finding_text(finding: Discrepancy) -> str:
    stored, raw = from_first_difference(finding.stored, finding.raw)
    name = one_line(finding.location)
    if finding.kind == "raw report":
        return f"{name} {one_line(raw)}"
    if finding.kind == CONTRADICTION:
        return f"{name}: {one_line(stored)}, but {one_line(raw)}"
    named = finding.kind == "test" or finding.kind in (*_SAYS, *finding.location.split("."))
    what = "" if named else f" {finding.kind}"
    return f"{name}{what}: stored {one_line(stored)}, {_SAYS.get(finding.kind, 'the raw reports say')} {one_line(raw)}"


def from_first_difference(stored: str, raw: str) -> tuple[str, str]:
    """Long texts with a common start are shown from shortly before their first difference."""
    if max(len(stored), len(raw)) <= MAX_SHORT_TEXT:
        return stored, raw
    pairs = enumerate(zip(stored, raw, strict=False))
    first = next((index for index, (a, b) in pairs if a != b), min(len(stored), len(raw)))
    start = first - SHOWN_CONTEXT
    return (stored, raw) if start <= 0 else (f"...{stored[start:]}", f"...{raw[start:]}")
