"""Changes of each test between an earlier and the present result of a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.evaluation.result_files.staleness import CHANGED_INPUTS, OTHER_RULES
from slop_code.verification.regrade.input_changes import ALL_TESTS
from slop_code.verification.regrade.regrade_record import ChangeKind, RegradedTest, TestState, VerdictChange

if TYPE_CHECKING:
    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.verification.regrade.input_changes import InputChanges

FLAKY = "nothing that is known changed: the test may be flaky"
BY_PROBLEM = ("tests", "config")
"""Digests whose changes are explained for each test."""


def changed_tests(old: CorrectnessResults, new: CorrectnessResults, inputs: InputChanges | None) -> list[RegradedTest]:
    """`inputs` is None if those of the earlier result are not known."""
    before = {test.nodeid: test for test in old.tests}
    after = {test.nodeid: test for test in new.tests}
    other = _other_causes(old, new)
    changes = []
    for name in dict.fromkeys([*before, *after]):
        change = _change(name, before.get(name), after.get(name), _reasons(old, new, inputs, before.get(name)), other)
        changes += [change] if change.kinds else []
    return changes


def verdict_changes(old: CorrectnessResults, new: CorrectnessResults) -> list[VerdictChange]:
    pairs = [(policy, was, new.passed[policy]) for policy, was in old.passed.items()]
    return [VerdictChange(policy=policy, old=was, new=now) for policy, was, now in pairs if was != now]


def _change(
    name: str, old: TestResult | None, new: TestResult | None, reasons: list[str], other: list[str]
) -> RegradedTest:
    before, after = _state(old), _state(new)
    if before is None or after is None:
        kinds = [ChangeKind.NEW if before is None else ChangeKind.GONE]
        return RegradedTest(test=name, kinds=kinds, why=[], old=before, new=after)
    kinds = [ChangeKind.CHANGED] if reasons else []
    why = list(reasons)
    if before.status != after.status:
        kinds.append(ChangeKind.STATUS)
        why += other or ([] if reasons else [FLAKY])
    if (before.group, before.quarantined) != (after.group, after.quarantined):
        kinds.append(ChangeKind.GROUP)
    return RegradedTest(test=name, kinds=kinds, why=why, old=before, new=after)


def _state(test: TestResult | None) -> TestState | None:
    if test is None:
        return None
    return TestState(status=test.status, group=test.group_type, quarantined=test.quarantined)


def _reasons(
    old: CorrectnessResults, new: CorrectnessResults, inputs: InputChanges | None, test: TestResult | None
) -> list[str]:
    if test is None:
        return []
    if inputs is not None:
        return list(inputs.reasons(test))
    before, after = old.provenance.digests, new.provenance.digests
    unknown = {"tests": ALL_TESTS, "config": CHANGED_INPUTS["config"]}
    return [text for name, text in unknown.items() if getattr(before, name) != getattr(after, name)]


def _other_causes(old: CorrectnessResults, new: CorrectnessResults) -> list[str]:
    """Changes outside of the problem that may have changed a status."""
    before, after = old.provenance, new.provenance
    names = [name for name in CHANGED_INPUTS if name not in BY_PROBLEM]
    causes = [CHANGED_INPUTS[name] for name in names if getattr(before.digests, name) != getattr(after.digests, name)]
    return causes + ([OTHER_RULES] if before.evaluation_version != after.evaluation_version else [])
