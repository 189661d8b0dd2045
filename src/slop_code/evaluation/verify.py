"""Whether a stored result is what its raw reports say: found out without running anything."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slop_code.errors import ResultError
from slop_code.evaluation.choose import nodeid_of
from slop_code.evaluation.damage import damaged
from slop_code.evaluation.evidence import CTRF_REPORT
from slop_code.evaluation.groups import BUILTIN_MARKERS, PYTEST_MARKERS, GroupType
from slop_code.evaluation.pairs import NEVER_RAN
from slop_code.evaluation.provenance import evaluation_version
from slop_code.evaluation.rederive import pairs_in, read_raw, rederive
from slop_code.evaluation.report import DERIVED, CorrectnessResults, TestResult
from slop_code.evaluation.workspace import Contents, tests_digest
from slop_code.execution.boxes import REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.conclusion import Conclusion
    from slop_code.evaluation.config import ProblemConfig
    from slop_code.evaluation.document import Document

MOST_PAIRS = 1024
_ROUNDING = {"rel_tol": 1e-6, "abs_tol": 1e-3}
_BY_LESSER = ("status", "checkpoint", "group_type")
"""What another report than the one that the result was made of says in the same words."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing in which a stored result is not what it was made of."""

    kind: str
    place: str
    stored: str
    raw: str
    """What the raw reports say instead; of a problem, what it has now."""


@dataclass(frozen=True, slots=True)
class Verification:
    stored: CorrectnessResults
    findings: list[Finding]
    unchecked: list[str]
    """What could not be checked, in words."""


def verify(folder: Path, document: Document, problem: ProblemConfig | None = None) -> Verification:
    """`folder`: where .scbench lies. A ResultError where there is nothing to check it with."""
    stored = document.results
    told = pairs = _pairs(stored)
    raws = read_raw(folder, pairs)
    if not raws:
        pairs = pairs_in(folder)
        raws = read_raw(folder, pairs)
    if not raws:
        why = stored.infrastructure_failure_reason
        never = why is not None and stored.pytest_exit_code == NEVER_RAN
        step = f"pytest never ran: {why}" if never else "evaluate the snapshot again"
        raise ResultError(f"{folder}: no raw reports in {REPORTS_DIR}; {step}")
    names, custom = _grouping(stored, problem)
    again = rederive(stored, raws, pairs, ordered=names, custom=custom)
    damage = [Finding("raw report", place, "whole", fact) for place, fact in damaged(stored, raws, pairs)]
    beside = CTRF_REPORT if stored.evidence == "json-report" else None
    whole = all(beside and one.place.endswith(beside) for one in damage)
    lost = len(raws) < pairs
    believed, unchecked = _regrouped(stored, again.conclusion, known=bool(stored.provenance.checkpoints or problem))
    unchecked = [*again.unchecked, *unchecked, *_versions(stored)]
    findings = [
        *([] if pairs == told else [Finding("isolation", "isolation.pairs", str(told), str(pairs))]),
        *damage,
        *(Finding("test", name, "listed twice", "once") for name in document.twice),
        *_tests(stored, believed, whole=whole, lost=lost),
        *(_whole(stored, again.conclusion) if whole else []),
        *_derived(document, _merged(stored, believed, again.conclusion, whole=whole, lost=lost)),
        *(_of_problem(stored, problem) if problem else []),
    ]
    if problem and stored.schema_version == 1:
        unchecked.append("provenance.digests.config: it was made in another way then")
    return Verification(stored, findings, list(dict.fromkeys(unchecked)))


def _pairs(stored: CorrectnessResults) -> int:
    told = stored.isolation.get("pairs", 1)
    return told if isinstance(told, int) and 1 <= told <= MOST_PAIRS else 1


def _grouping(stored: CorrectnessResults, problem: ProblemConfig | None) -> tuple[list[str], Mapping[str, GroupType]]:
    if stored.provenance.checkpoints:
        return stored.provenance.checkpoints, stored.provenance.groups
    if problem is not None:
        return list(problem.checkpoints), problem.custom_groups
    return sorted({stored.checkpoint_name, *(test.checkpoint for test in stored.tests)}), {}


def _regrouped(stored: CorrectnessResults, found: Conclusion, *, known: bool) -> tuple[list[TestResult], list[str]]:
    """Without the problem's own markers, a test that has one counts where the result says."""
    if known:
        return found.tests, []
    ordinary = {*BUILTIN_MARKERS, *PYTEST_MARKERS}
    groups = {nodeid_of(test): test.group_type for test in stored.tests}
    tests, open_ = [], set()
    for test in found.tests:
        own = [marker for marker in test.markers if marker not in ordinary]
        decided = test.checkpoint != stored.checkpoint_name or {"error", "regression"} & set(test.markers)
        if own and not decided and nodeid_of(test) in groups:
            open_ |= set(own)
            test = test.model_copy(update={"group_type": groups[nodeid_of(test)]})
        tests.append(test)
    said = ["to which checkpoints test files belong: the result is of an older format; give -p PROBLEM"]
    if open_:
        said.append(f"groups of tests marked {', '.join(sorted(open_)[:10])}: give -p PROBLEM")
    return tests, said


def _versions(stored: CorrectnessResults) -> list[str]:
    made = stored.provenance.evaluation_version
    if made == evaluation_version():
        return []
    return [f"the rules of evaluation_version {made or 'none'}: these are the ones of {evaluation_version()}"]


def _tests(stored: CorrectnessResults, found: list[TestResult], *, whole: bool, lost: bool) -> Iterator[Finding]:
    raw = {nodeid_of(test): test for test in found}
    for test in stored.tests:
        name = nodeid_of(test)
        if name in raw:
            yield from _test(name, test, raw[name], _BY_LESSER if not whole else tuple(TestResult.model_fields))
        elif not lost:
            yield Finding("test", name, test.status, "no such test")
    known = {nodeid_of(test) for test in stored.tests}
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
        yield Finding(field, name, _text(one), _text(other))


def _whole(stored: CorrectnessResults, found: Conclusion) -> Iterator[Finding]:
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


def _merged(
    stored: CorrectnessResults, tests: list[TestResult], found: Conclusion, *, whole: bool, lost: bool
) -> CorrectnessResults:
    """The result as the raw reports give it, and as it stands where they are lost."""
    known = {nodeid_of(test) for test in tests}
    kept = [test for test in stored.tests if nodeid_of(test) not in known] if lost else []
    reason = found.reason if whole else stored.infrastructure_failure_reason
    deselected = found.deselected if whole else stored.deselected
    update = {"tests": [*tests, *kept], "infrastructure_failure_reason": reason, "deselected": deselected}
    return stored.model_copy(update=update)


def _derived(document: Document, right: CorrectnessResults) -> Iterator[Finding]:
    for name in DERIVED:
        stored, raw = document.derived[name], getattr(right, name)
        if not isinstance(raw, dict):
            # A reason that was edited is told by itself.
            if stored is not raw and stored is not document.results.infrastructure_failure:
                yield Finding(name, name, _text(stored), _text(raw))
            continue
        given = stored if isinstance(stored, dict) else {}
        for key in dict.fromkeys([*raw, *given]):
            if type(given.get(key)) is not type(raw.get(key)) or given.get(key) != raw.get(key):
                yield Finding(name, f"{name}.{key}", _text(given.get(key)), _text(raw.get(key)))


def _of_problem(stored: CorrectnessResults, problem: ProblemConfig) -> Iterator[Finding]:
    checkpoint, digests = problem.checkpoint(stored.checkpoint_name), stored.provenance.digests
    config, tests = problem.digest(checkpoint), tests_digest(problem, checkpoint, Contents.of(problem))
    if digests.config != config and stored.schema_version > 1:
        yield Finding("digest", "provenance.digests.config", digests.config, f"{config} in {problem.path}")
    if digests.tests not in (None, tests):
        yield Finding("digest", "provenance.digests.tests", str(digests.tests), f"{tests} in {problem.path}")
    if stored.provenance.checkpoints and stored.provenance.checkpoints != list(problem.checkpoints):
        place = "provenance.checkpoints"
        yield Finding("digest", place, _text(stored.provenance.checkpoints), _text(list(problem.checkpoints)))
    if stored.provenance.checkpoints and stored.provenance.groups != problem.custom_groups:
        yield Finding(
            "digest", "provenance.groups", _text(stored.provenance.groups), _text(dict(problem.custom_groups))
        )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=True)
