"""Whether a stored result is what its raw reports say: found out without running anything."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.errors import ResultError
from slop_code.evaluation.evidence import CTRF_REPORT
from slop_code.evaluation.groups import BUILTIN_MARKERS, PYTEST_MARKERS, QUARANTINED
from slop_code.evaluation.pairs import NEVER_RAN
from slop_code.evaluation.provenance import evaluation_version
from slop_code.evaluation.report import DERIVED, CorrectnessResults, TestResult
from slop_code.execution.sandbox import REPORTS_DIR
from slop_code.verification.contradictions import contradictions
from slop_code.verification.damage import damaged, strays
from slop_code.verification.discrepancy import Finding
from slop_code.verification.inputs import of_command, of_problem, of_snapshot, text
from slop_code.verification.regrade import pairs_in, read_raw, rederive

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from slop_code.evaluation.conclusion import Conclusion
    from slop_code.evaluation.config import ProblemConfig
    from slop_code.verification.damage import Damage
    from slop_code.verification.regrade import Raw
    from slop_code.verification.stored_document import Document

MAX_PAIRS = 1024
_ROUNDING = {"rel_tol": 1e-6, "abs_tol": 1e-3}
_BY_LESSER = ("status", "checkpoint", "group_type")
"""What another report than the one that the result was made of says in the same words."""


@dataclass(frozen=True, slots=True)
class Verification:
    stored: CorrectnessResults
    findings: list[Finding]
    unchecked: list[str]
    """What could not be checked, in words."""
    with_problem: bool = False
    """Whether the problem was looked at too."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A stored result, and what its raw reports come to."""

    stored: CorrectnessResults
    found: Conclusion
    whole: bool
    """Whether the report that the result was made of is there, and what it takes to come to a verdict."""
    lost: bool
    """Whether a pair left nothing."""


def verify(folder: Path, document: Document, problem: ProblemConfig | None = None) -> Verification:
    """`folder`: where .scbench lies. A ResultError where there is nothing to check it with."""
    stored = document.results
    raws, pairs = _raws(folder, stored)
    names, custom = stored.provenance.checkpoints, stored.provenance.groups
    again = rederive(stored, raws, pairs, ordered=names, custom=custom)
    damage = list(damaged(stored, raws, pairs))
    case = _Case(stored, again.conclusion, whole=_whole(stored, damage), lost=len(raws) < pairs)
    snapshot, no_snapshot = of_snapshot(stored, folder)
    findings = [
        *_pairs(stored, folder, pairs),
        *(Finding("raw report", one.place, "whole", one.fact) for one in damage),
        *(finding for raw in raws for finding in contradictions(raw)),
        *(Finding("test", name, "listed twice", "once") for name in document.twice),
        *_tests(case),
        *(_ends(case) if case.whole else []),
        *_derived(document, _merged(case)),
        *snapshot,
        *of_command(stored),
        *(of_problem(stored, problem) if problem else []),
    ]
    open_groups = [] if problem else _open_groups(stored, case.found.tests)
    unchecked = [*again.unchecked, *open_groups, *_versions(stored), *no_snapshot]
    return Verification(stored, findings, list(dict.fromkeys(unchecked)), with_problem=problem is not None)


def _raws(folder: Path, stored: CorrectnessResults) -> tuple[list[Raw], int]:
    """And of how many pairs they are: as the result says, else as many as there are."""
    told = stored.isolation.get("pairs", 1)
    pairs = told if isinstance(told, int) and 1 <= told <= MAX_PAIRS else 1
    if raws := read_raw(folder, pairs):
        return raws, pairs
    pairs = pairs_in(folder)
    if raws := read_raw(folder, pairs):
        return raws, pairs
    why = stored.infrastructure_failure_reason
    never = why is not None and stored.pytest_exit_code == NEVER_RAN
    step = f"pytest never ran: {why}" if never else "evaluate the snapshot again"
    raise ResultError(f"{folder}: no raw reports in {REPORTS_DIR}; {step}")


def _pairs(stored: CorrectnessResults, folder: Path, pairs: int) -> Iterator[Finding]:
    told = stored.isolation.get("pairs", 1)
    if type(told) is not int or told != pairs:
        yield Finding("isolation", "isolation.pairs", text(told), str(pairs))
    for name in strays(folder, pairs):
        yield Finding("raw report", name, "no such pair", f"has reports of a pair beyond the {pairs} of the evaluation")


def _whole(stored: CorrectnessResults, damage: Sequence[Damage]) -> bool:
    return all(stored.evidence == "json-report" and one.file == CTRF_REPORT for one in damage)


def _open_groups(stored: CorrectnessResults, tests: Sequence[TestResult]) -> Iterator[str]:
    """Without the problem, only the result itself says in which group its own markers put a test."""
    ordinary = {*BUILTIN_MARKERS, *PYTEST_MARKERS, QUARANTINED} - stored.provenance.groups.keys()
    markers: set[str] = set()
    for test in tests:
        if test.checkpoint == stored.checkpoint_name and not {"error", "regression"} & set(test.markers):
            markers |= set(test.markers) - ordinary
    if markers:
        yield f"groups of tests marked {', '.join(sorted(markers)[:10])}: give -p PROBLEM"


def _versions(stored: CorrectnessResults) -> Iterator[str]:
    made = stored.provenance.evaluation_version
    if made != evaluation_version():
        yield f"the rules of evaluation_version {made or 'none'}: these are the ones of {evaluation_version()}"


def _tests(case: _Case) -> Iterator[Finding]:
    raw = {test.nodeid: test for test in case.found.tests}
    fields = tuple(TestResult.model_fields) if case.whole else _BY_LESSER
    for test in case.stored.tests:
        name = test.nodeid
        if name in raw:
            yield from _test(name, test, raw[name], fields)
        elif not case.lost:
            yield Finding("test", name, test.status, "no such test")
    known = {test.nodeid for test in case.stored.tests}
    for name, test in raw.items():
        if name not in known:
            yield Finding("test", name, "no such test", test.status)


def _test(name: str, stored: TestResult, raw: TestResult, fields: Sequence[str]) -> Iterator[Finding]:
    for field in fields:
        one, other = getattr(stored, field), getattr(raw, field)
        if one == other or (field == "duration_ms" and math.isclose(one, other, **_ROUNDING)):
            continue
        if field in ("failure_message", "output", "calls") and stored.status != raw.status:
            continue  # they come with the status
        if field == "group_type" and stored.checkpoint != raw.checkpoint:
            continue
        yield Finding(field, name, text(one), text(other))


def _ends(case: _Case) -> Iterator[Finding]:
    stored, found = case.stored, case.found
    if stored.pytest_exit_code != found.exit_code:
        yield Finding("pytest_exit_code", "pytest_exit_code", str(stored.pytest_exit_code), str(found.exit_code))
    if stored.infrastructure_failure_reason != found.reason:
        one, other = stored.infrastructure_failure_reason, found.reason
        place = "infrastructure_failure_reason"
        yield Finding(place, place, one or "no infrastructure failure", other or "no infrastructure failure")
    if stored.evidence != found.source:
        yield Finding("evidence", "evidence", stored.evidence, found.source)
    # What the tests' own conftest.py leaves out is in the reports too, and counts for nobody.
    if not min(1, found.deselected) <= stored.deselected <= found.deselected:
        yield Finding("deselected", "deselected", str(stored.deselected), str(found.deselected))


def _merged(case: _Case) -> CorrectnessResults:
    """The result as the raw reports give it, and as it stands where they are lost."""
    stored, found = case.stored, case.found
    known = {test.nodeid for test in case.found.tests}
    kept = [test for test in stored.tests if test.nodeid not in known] if case.lost else []
    reason = found.reason if case.whole else stored.infrastructure_failure_reason
    deselected = found.deselected if case.whole else stored.deselected
    update = {"tests": [*case.found.tests, *kept], "infrastructure_failure_reason": reason, "deselected": deselected}
    return stored.model_copy(update=update)


def _derived(document: Document, right: CorrectnessResults) -> Iterator[Finding]:
    for name in DERIVED:
        stored, raw = document.derived[name], getattr(right, name)
        if not isinstance(raw, dict):
            # A reason that was edited is told by itself.
            if stored is not raw and stored is not document.results.infrastructure_failure:
                yield Finding(name, name, text(stored), text(raw))
            continue
        given = stored if isinstance(stored, dict) else {}
        for key in dict.fromkeys([*raw, *given]):
            if type(given.get(key)) is not type(raw.get(key)) or given.get(key) != raw.get(key):
                yield Finding(name, f"{name}.{key}", text(given.get(key)), text(raw.get(key)))
