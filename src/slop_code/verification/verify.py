"""Verification: a stored result compared with the grade of its evidence, without running anything."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.errors import ResultError
from slop_code.evaluation.evidence import NEVER_RAN, Evidence, read_repeats, read_roster
from slop_code.evaluation.grading import Grade, GradingRules, grade
from slop_code.evaluation.groups import BUILTIN_MARKERS, PYTEST_MARKERS, QUARANTINED
from slop_code.evaluation.report import DERIVED, CorrectnessResults, TestResult
from slop_code.evaluation.result_files.evidence_files import CTRF_REPORT, ROSTER
from slop_code.evaluation.result_files.staleness import evaluation_version
from slop_code.evaluation.roster import MAX_PAIRS, Roster
from slop_code.execution.sandbox import REPORTS_DIR
from slop_code.verification.contradictions import Discrepancy, contradictions, marker_contradictions
from slop_code.verification.damage import find_damage, read_pairs, stray_folders
from slop_code.verification.inputs import (
    as_text,
    command_discrepancies,
    problem_discrepancies,
    quarantine_discrepancies,
    reserved_marker_discrepancies,
    snapshot_discrepancies,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.verification.damage import Damage
    from slop_code.verification.stored_document import Document

_ROUNDING = {"rel_tol": 1e-6, "abs_tol": 1e-3}
MAX_NAMES = 10
"""Names in a text about what could not be checked."""

_FIELDS_OF_ALL_REPORTS = ("status", "checkpoint", "group_type")
"""Fields whose values do not depend on the report that a test was read from."""


@dataclass(frozen=True, slots=True)
class Verification:
    stored: CorrectnessResults
    findings: list[Discrepancy]
    unchecked: list[str]
    """Texts about what could not be checked."""
    with_problem: bool = False
    """Whether the result was compared with the problem too."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A stored result, and the grade that follows from its evidence."""

    stored: CorrectnessResults
    graded: Grade
    complete: bool
    """All evidence that a verdict needs is there, and so is the report that the result was made from."""
    pair_missing: bool
    """A pair has no evidence."""


def verify(folder: Path, document: Document, problem: ProblemConfig | None = None) -> Verification:
    """`folder` contains `.scbench`. Raises ResultError if there is no evidence to check the result with."""
    stored = document.results
    roster, evidence, pairs = _read(folder, stored)
    damage = list(find_damage(stored, roster, evidence, pairs))
    snapshot, no_snapshot = snapshot_discrepancies(stored, folder)
    repeats = read_repeats(folder)
    regraded, unchecked = _regraded(document, roster, evidence, repeats, damage, pair_missing=len(evidence) < pairs)
    findings = [
        *_pairs(stored, folder, pairs),
        *(Discrepancy("raw report", entry.location, "whole", entry.fact) for entry in damage),
        *(discrepancy for pair in (*evidence, *repeats) for discrepancy in contradictions(pair)),
        *(marker_contradictions(roster, evidence) if isinstance(roster, Roster) else []),
        *(Discrepancy("test", name, "listed twice", "once") for name in document.duplicates),
        *regraded,
        *snapshot,
        *command_discrepancies(stored),
        *reserved_marker_discrepancies(stored),
        *(problem_discrepancies(stored, problem) if problem else []),
        *(quarantine_discrepancies(roster, problem) if problem and isinstance(roster, Roster) else []),
    ]
    without_problem = [] if problem else [*_unchecked_groups(stored), *_unchecked_quarantine(stored)]
    unchecked = [*unchecked, *without_problem, *_versions(stored), *no_snapshot]
    return Verification(stored, findings, list(dict.fromkeys(unchecked)), with_problem=problem is not None)


def _read(folder: Path, stored: CorrectnessResults) -> tuple[Roster | str, list[Evidence], int]:
    """The roster, the evidence, and the number of pairs, which is the result's if the roster is damaged."""
    roster = read_roster(folder)
    recorded = stored.isolation.get("pairs", 1)
    pairs = recorded if type(recorded) is int and 1 <= recorded <= MAX_PAIRS else 1
    if isinstance(roster, Roster):
        pairs = roster.pairs
    if evidence := read_pairs(folder, roster, pairs):
        return roster, evidence, pairs
    reason = stored.infrastructure_failure_reason
    never_ran = reason is not None and stored.pytest_exit_code == NEVER_RAN
    step = f"pytest never ran: {reason}" if never_ran else "evaluate the snapshot again"
    raise ResultError(f"{folder}: no raw reports in {REPORTS_DIR}; {step}")


def _regraded(
    document: Document,
    roster: Roster | str,
    evidence: Sequence[Evidence],
    repeats: Sequence[Evidence],
    damage: Sequence[Damage],
    *,
    pair_missing: bool,
) -> tuple[list[Discrepancy], list[str]]:
    """Discrepancies between the result and the grade of its evidence, and texts about what could not be checked."""
    if isinstance(roster, str):
        return [], [f"tests and verdict: {ROSTER} {roster}"]
    stored = document.results
    provenance = stored.provenance
    rules = GradingRules.with_markers(
        provenance.checkpoints, stored.checkpoint_name, provenance.groups, provenance.pytest_args
    )
    graded = grade(evidence, roster, rules, repeats)
    case = _Case(stored, graded, complete=_complete(stored, damage), pair_missing=pair_missing)
    return [*_tests(case), *(_outcome(case) if case.complete else []), *_derived(document, _merged(case))], []


def _pairs(stored: CorrectnessResults, folder: Path, pairs: int) -> Iterator[Discrepancy]:
    recorded = stored.isolation.get("pairs", 1)
    if type(recorded) is not int or recorded != pairs:
        yield Discrepancy("isolation", "isolation.pairs", as_text(recorded), str(pairs))
    for name in stray_folders(folder, pairs):
        fact = f"has reports of a pair beyond the {pairs} of the evaluation"
        yield Discrepancy("raw report", name, "no such pair", fact)


def _complete(stored: CorrectnessResults, damage: Sequence[Damage]) -> bool:
    """A result that was made from the JSON report does not need the CTRF report."""
    return all(stored.evidence == "json-report" and entry.file == CTRF_REPORT for entry in damage)


def _unchecked_groups(stored: CorrectnessResults) -> Iterator[str]:
    """The groups of a problem's own markers can only be checked with the problem's config.yaml."""
    known = {*BUILTIN_MARKERS, *PYTEST_MARKERS, QUARANTINED} - stored.provenance.groups.keys()
    markers: set[str] = set()
    for test in stored.tests:
        if test.checkpoint == stored.checkpoint_name and not {"error", "regression"} & set(test.markers):
            markers |= set(test.markers) - known
    if markers:
        yield f"groups of tests marked {', '.join(sorted(markers)[:MAX_NAMES])}: give -p PROBLEM"


def _unchecked_quarantine(stored: CorrectnessResults) -> Iterator[str]:
    """The evidence has the tests that the judge got as quarantined, but only the problem has its own quarantine."""
    names = [test.nodeid for test in stored.tests if test.quarantined]
    if names:
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        yield f"quarantine of {', '.join(names[:MAX_NAMES])}{more}: give -p PROBLEM"


def _versions(stored: CorrectnessResults) -> Iterator[str]:
    version = stored.provenance.evaluation_version
    if version != evaluation_version():
        yield f"the rules of evaluation_version {version or 'none'}: these are the ones of {evaluation_version()}"


def _tests(case: _Case) -> Iterator[Discrepancy]:
    raw = {test.nodeid: test for test in case.graded.tests}
    fields = tuple(TestResult.model_fields) if case.complete else _FIELDS_OF_ALL_REPORTS
    for test in case.stored.tests:
        name = test.nodeid
        if name in raw:
            yield from _test(name, test, raw[name], fields, carried=bool(case.stored.attempts))
        elif not case.pair_missing:
            yield Discrepancy("test", name, test.status, "no such test")
    known = {test.nodeid for test in case.stored.tests}
    for name, test in raw.items():
        if name not in known:
            yield Discrepancy("test", name, "no such test", test.status)


def _test(
    name: str, stored: TestResult, raw: TestResult, fields: Sequence[str], *, carried: bool
) -> Iterator[Discrepancy]:
    for field in fields:
        value, other = getattr(stored, field), getattr(raw, field)
        if value == other or (field == "duration_ms" and math.isclose(value, other, **_ROUNDING)):
            continue
        if field in ("failure_message", "output", "calls") and stored.status != raw.status:
            continue  # these differ because the status does
        if field == "attempts" and value[max(0, len(value) - len(other)) :] == other and carried:
            continue  # those before are of an earlier attempt of the whole evaluation, which decides nothing
        if field == "group_type" and stored.checkpoint != raw.checkpoint:
            continue
        yield Discrepancy(field, name, as_text(value), as_text(other))


def _outcome(case: _Case) -> Iterator[Discrepancy]:
    stored, graded = case.stored, case.graded
    if stored.pytest_exit_code != graded.exit_code:
        yield Discrepancy("pytest_exit_code", "pytest_exit_code", str(stored.pytest_exit_code), str(graded.exit_code))
    if stored.infrastructure_failure_reason != graded.infrastructure_failure_reason:
        reasons = [stored.infrastructure_failure_reason, graded.infrastructure_failure_reason]
        name = "infrastructure_failure_reason"
        yield Discrepancy(name, name, *[reason or "no infrastructure failure" for reason in reasons])
    if stored.setup_failure != graded.setup_failure:
        texts = [text or "set-up did not fail" for text in (stored.setup_failure, graded.setup_failure)]
        yield Discrepancy("setup_failure", "setup_failure", *texts)
    if stored.evidence != graded.source:
        yield Discrepancy("evidence", "evidence", stored.evidence, graded.source)
    # The reports also list tests that the problem's own conftest.py deselects, and the result does not count those.
    if not min(1, graded.deselected) <= stored.deselected <= graded.deselected:
        yield Discrepancy("deselected", "deselected", str(stored.deselected), str(graded.deselected))


def _merged(case: _Case) -> CorrectnessResults:
    """The result as graded from the raw reports, with stored values where reports are missing."""
    stored, graded = case.stored, case.graded
    known = {test.nodeid for test in case.graded.tests}
    kept = [test for test in stored.tests if test.nodeid not in known] if case.pair_missing else []
    reason = graded.infrastructure_failure_reason if case.complete else stored.infrastructure_failure_reason
    deselected = graded.deselected if case.complete else stored.deselected
    update = {"tests": [*case.graded.tests, *kept], "infrastructure_failure_reason": reason, "deselected": deselected}
    return stored.model_copy(update=update)


def _derived(document: Document, expected: CorrectnessResults) -> Iterator[Discrepancy]:
    for name in DERIVED:
        stored, raw = document.derived[name], getattr(expected, name)
        if not isinstance(raw, dict):
            # A flag that follows from an edited reason is not reported besides the reason.
            if stored is not raw and stored is not document.results.infrastructure_failure:
                yield Discrepancy(name, name, as_text(stored), as_text(raw))
            continue
        given = stored if isinstance(stored, dict) else {}
        for key in dict.fromkeys([*raw, *given]):
            if type(given.get(key)) is not type(raw.get(key)) or given.get(key) != raw.get(key):
                yield Discrepancy(name, f"{name}.{key}", as_text(given.get(key)), as_text(raw.get(key)))
