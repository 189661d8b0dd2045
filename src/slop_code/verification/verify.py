"""Verification: a stored result compared with the grade of its evidence, without running anything."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.errors import ResultError
from slop_code.evaluation.evidence import CTRF_REPORT, NEVER_RAN, ROSTER, Evidence, read_roster
from slop_code.evaluation.grading import Grade, GradingRules, grade
from slop_code.evaluation.groups import BUILTIN_MARKERS, PYTEST_MARKERS, QUARANTINED
from slop_code.evaluation.provenance import evaluation_version
from slop_code.evaluation.report import DERIVED, CorrectnessResults, TestResult
from slop_code.evaluation.roster import MAX_PAIRS, Roster
from slop_code.execution.sandbox import REPORTS_DIR
from slop_code.verification.contradictions import Discrepancy, contradictions
from slop_code.verification.damage import find_damage, read_pairs, stray_folders
from slop_code.verification.inputs import of_command, of_problem, of_snapshot, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.verification.damage import Damage
    from slop_code.verification.stored_document import Document

_ROUNDING = {"rel_tol": 1e-6, "abs_tol": 1e-3}
_BY_LESSER = ("status", "checkpoint", "group_type")
"""Fields that every report has in the same words, not only the report that the result was made of."""


@dataclass(frozen=True, slots=True)
class Verification:
    stored: CorrectnessResults
    findings: list[Discrepancy]
    unchecked: list[str]
    """What could not be checked, in words."""
    with_problem: bool = False
    """Whether the problem was looked at too."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A stored result, and the grade that follows from its evidence."""

    stored: CorrectnessResults
    graded: Grade
    whole: bool
    """The report that the result was made of is there, and everything that a verdict takes."""
    lost: bool
    """A pair left nothing."""


def verify(folder: Path, document: Document, problem: ProblemConfig | None = None) -> Verification:
    """`folder`: where .scbench lies. A ResultError where there is nothing to check the result with."""
    stored = document.results
    roster, evidence, pairs = _read(folder, stored)
    damage = list(find_damage(stored, roster, evidence, pairs))
    snapshot, no_snapshot = of_snapshot(stored, folder)
    regraded, unchecked = _regraded(document, roster, evidence, damage, lost=len(evidence) < pairs)
    findings = [
        *_pairs(stored, folder, pairs),
        *(Discrepancy("raw report", entry.location, "whole", entry.fact) for entry in damage),
        *(discrepancy for pair in evidence for discrepancy in contradictions(pair)),
        *(Discrepancy("test", name, "listed twice", "once") for name in document.twice),
        *regraded,
        *snapshot,
        *of_command(stored),
        *(of_problem(stored, problem) if problem else []),
    ]
    groups = [] if problem else _open_groups(stored)
    unchecked = [*unchecked, *groups, *_versions(stored), *no_snapshot]
    return Verification(stored, findings, list(dict.fromkeys(unchecked)), with_problem=problem is not None)


def _read(folder: Path, stored: CorrectnessResults) -> tuple[Roster | str, list[Evidence], int]:
    """And the number of pairs: the roster's, or the result's where the roster is damaged."""
    roster = read_roster(folder)
    recorded = stored.isolation.get("pairs", 1)
    pairs = recorded if type(recorded) is int and 1 <= recorded <= MAX_PAIRS else 1
    if isinstance(roster, Roster):
        pairs = roster.pairs
    if evidence := read_pairs(folder, roster, pairs):
        return roster, evidence, pairs
    reason = stored.infrastructure_failure_reason
    never = reason is not None and stored.pytest_exit_code == NEVER_RAN
    step = f"pytest never ran: {reason}" if never else "evaluate the snapshot again"
    raise ResultError(f"{folder}: no raw reports in {REPORTS_DIR}; {step}")


def _regraded(
    document: Document, roster: Roster | str, evidence: Sequence[Evidence], damage: Sequence[Damage], *, lost: bool
) -> tuple[list[Discrepancy], list[str]]:
    """The discrepancies with the grade of the evidence, and what could not be checked."""
    if isinstance(roster, str):
        return [], [f"tests and verdict: {ROSTER} {roster}"]
    stored = document.results
    made = stored.provenance
    rules = GradingRules.with_markers(made.checkpoints, stored.checkpoint_name, made.groups, made.pytest_args)
    case = _Case(stored, grade(evidence, roster, rules), whole=_whole(stored, damage), lost=lost)
    return [*_tests(case), *(_ends(case) if case.whole else []), *_derived(document, _merged(case))], []


def _pairs(stored: CorrectnessResults, folder: Path, pairs: int) -> Iterator[Discrepancy]:
    recorded = stored.isolation.get("pairs", 1)
    if type(recorded) is not int or recorded != pairs:
        yield Discrepancy("isolation", "isolation.pairs", text(recorded), str(pairs))
    for name in stray_folders(folder, pairs):
        fact = f"has reports of a pair beyond the {pairs} of the evaluation"
        yield Discrepancy("raw report", name, "no such pair", fact)


def _whole(stored: CorrectnessResults, damage: Sequence[Damage]) -> bool:
    return all(stored.evidence == "json-report" and entry.file == CTRF_REPORT for entry in damage)


def _open_groups(stored: CorrectnessResults) -> Iterator[str]:
    """Without the problem, only the result itself says in which group its own markers put a test."""
    ordinary = {*BUILTIN_MARKERS, *PYTEST_MARKERS, QUARANTINED} - stored.provenance.groups.keys()
    markers: set[str] = set()
    for test in stored.tests:
        if test.checkpoint == stored.checkpoint_name and not {"error", "regression"} & set(test.markers):
            markers |= set(test.markers) - ordinary
    if markers:
        yield f"groups of tests marked {', '.join(sorted(markers)[:10])}: give -p PROBLEM"


def _versions(stored: CorrectnessResults) -> Iterator[str]:
    made = stored.provenance.evaluation_version
    if made != evaluation_version():
        yield f"the rules of evaluation_version {made or 'none'}: these are the ones of {evaluation_version()}"


def _tests(case: _Case) -> Iterator[Discrepancy]:
    raw = {test.nodeid: test for test in case.graded.tests}
    fields = tuple(TestResult.model_fields) if case.whole else _BY_LESSER
    for test in case.stored.tests:
        name = test.nodeid
        if name in raw:
            yield from _test(name, test, raw[name], fields)
        elif not case.lost:
            yield Discrepancy("test", name, test.status, "no such test")
    known = {test.nodeid for test in case.stored.tests}
    for name, test in raw.items():
        if name not in known:
            yield Discrepancy("test", name, "no such test", test.status)


def _test(name: str, stored: TestResult, raw: TestResult, fields: Sequence[str]) -> Iterator[Discrepancy]:
    for field in fields:
        value, other = getattr(stored, field), getattr(raw, field)
        if value == other or (field == "duration_ms" and math.isclose(value, other, **_ROUNDING)):
            continue
        if field in ("failure_message", "output", "calls") and stored.status != raw.status:
            continue  # they come with the status
        if field == "group_type" and stored.checkpoint != raw.checkpoint:
            continue
        yield Discrepancy(field, name, text(value), text(other))


def _ends(case: _Case) -> Iterator[Discrepancy]:
    stored, graded = case.stored, case.graded
    if stored.pytest_exit_code != graded.exit_code:
        yield Discrepancy("pytest_exit_code", "pytest_exit_code", str(stored.pytest_exit_code), str(graded.exit_code))
    if stored.infrastructure_failure_reason != graded.infrastructure_failure:
        reasons = [stored.infrastructure_failure_reason, graded.infrastructure_failure]
        name = "infrastructure_failure_reason"
        yield Discrepancy(name, name, *[reason or "no infrastructure failure" for reason in reasons])
    if stored.evidence != graded.source:
        yield Discrepancy("evidence", "evidence", stored.evidence, graded.source)
    # What the tests' own conftest.py leaves out is in the reports too, and counts for nobody.
    if not min(1, graded.deselected) <= stored.deselected <= graded.deselected:
        yield Discrepancy("deselected", "deselected", str(stored.deselected), str(graded.deselected))


def _merged(case: _Case) -> CorrectnessResults:
    """The result as the raw reports give it, and as it stands where they are lost."""
    stored, graded = case.stored, case.graded
    known = {test.nodeid for test in case.graded.tests}
    kept = [test for test in stored.tests if test.nodeid not in known] if case.lost else []
    reason = graded.infrastructure_failure if case.whole else stored.infrastructure_failure_reason
    deselected = graded.deselected if case.whole else stored.deselected
    update = {"tests": [*case.graded.tests, *kept], "infrastructure_failure_reason": reason, "deselected": deselected}
    return stored.model_copy(update=update)


def _derived(document: Document, right: CorrectnessResults) -> Iterator[Discrepancy]:
    for name in DERIVED:
        stored, raw = document.derived[name], getattr(right, name)
        if not isinstance(raw, dict):
            # A reason that was edited is a discrepancy by itself.
            if stored is not raw and stored is not document.results.infrastructure_failure:
                yield Discrepancy(name, name, text(stored), text(raw))
            continue
        given = stored if isinstance(stored, dict) else {}
        for key in dict.fromkeys([*raw, *given]):
            if type(given.get(key)) is not type(raw.get(key)) or given.get(key) != raw.get(key):
                yield Discrepancy(name, f"{name}.{key}", text(given.get(key)), text(raw.get(key)))
