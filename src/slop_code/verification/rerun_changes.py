"""Changes between a stored result and its rerun: pure functions over two results."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slop_code.evaluation.report import CorrectnessResults, Provenance, TestResult
    from slop_code.evaluation.reports.raw_test import Status

MEANINGS = {
    "submission": "the code is not the one that was evaluated",
    "tests": "the problem's test files, data or assets have changed",
    "config": "the problem's config.yaml has changed in what can change a verdict",
    "environment": "another environment, or its file has changed; -e names one",
    "image": "the container image is another one",
    "python": "the submission ran on another version of Python",
}
SLOWEST = 5
_ADDRESS = re.compile(r"0x[0-9a-f]{6,16}\b")


@dataclass(frozen=True, slots=True)
class ValueChange:
    what: str
    old: str | None
    new: str | None
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class StatusChange:
    test: str
    old: Status | None
    """Its status before, or None if there was no such test."""

    new: Status | None
    message_changed: bool = False


@dataclass(frozen=True, slots=True)
class TimeChange:
    what: str
    old: float
    new: float
    """Seconds."""


@dataclass(frozen=True, slots=True)
class RerunChanges:
    reasons: tuple[str | None, str | None]
    """Reasons of the infrastructure failures before and now; None where there is a verdict."""

    verdicts: list[ValueChange]
    statuses: list[StatusChange]
    added: list[StatusChange]
    removed: list[StatusChange]
    messages: list[StatusChange]
    """Tests with the same status and another message, which alone does not count as a difference."""

    digests: list[ValueChange]
    versions: list[ValueChange]
    times: list[TimeChange]
    """The whole evaluation, each phase, and the tests with the largest changes. Times never count as a difference."""

    @property
    def same_inputs(self) -> bool | None:
        """Whether no input changed, or None if there is no verdict now, so that nothing was compared."""
        return None if self.reasons[1] is not None else not self.digests and not self.versions

    @property
    def differ(self) -> bool:
        outcome = (self.reasons[0] is None) != (self.reasons[1] is None)
        return bool(outcome or self.verdicts or self.statuses or self.added or self.removed)

    @property
    def flaky(self) -> bool:
        """Whether statuses changed though all inputs are the same."""
        return bool(self.statuses) and self.same_inputs is True and self.reasons[0] is None


def rerun_changes(old: CorrectnessResults, new: CorrectnessResults, test: TestResult | None = None) -> RerunChanges:
    """`test` is the only test that ran again, so that only this test is compared.

    An evaluation with an infrastructure failure may lack tests and inputs. What it lacks does not count as a change.
    """
    reasons = old.infrastructure_failure_reason, new.infrastructure_failure_reason
    if reasons[1] is not None:
        return RerunChanges(reasons, [], [], [], [], [], [], [], [])
    had_verdict = reasons[0] is None
    if test is not None:
        old = old.model_copy(update={"tests": [test], "deselected": new.deselected})
    before, after = _by_name(old), _by_name(new)
    both = [name for name in before if name in after]
    pairs = [
        StatusChange(name, before[name].status, after[name].status, _message_changed(before[name], after[name]))
        for name in both
    ]
    return RerunChanges(
        reasons=reasons,
        verdicts=[
            ValueChange(policy, _verdict(was), _verdict(new.passed[policy]))
            for policy, was in old.passed.items()
            if had_verdict and was != new.passed[policy]
        ],
        statuses=[pair for pair in pairs if pair.old != pair.new],
        added=[
            StatusChange(name, None, test.status) for name, test in after.items() if had_verdict and name not in before
        ],
        removed=[StatusChange(name, test.status, None) for name, test in before.items() if name not in after],
        messages=[pair for pair in pairs if pair.old == pair.new and pair.message_changed],
        digests=[change for change in _digests(old, new) if had_verdict or change.old],
        versions=[change for change in _versions(old.provenance, new.provenance) if had_verdict or change.old],
        times=[*(_phases(old, new) if test is None else []), *_slowest(before, after, both)],
    )


def _by_name(results: CorrectnessResults) -> dict[str, TestResult]:
    return {test.nodeid: test for test in results.tests}


def _message_changed(old: TestResult, new: TestResult) -> bool:
    """Memory addresses differ in every run, so they are not compared."""
    before, after = (_ADDRESS.sub("0x", test.failure_message or "") for test in (old, new))
    return before != after


def _verdict(passed: bool) -> str:
    return "passed" if passed else "not passed"


def _digests(old: CorrectnessResults, new: CorrectnessResults) -> list[ValueChange]:
    before, after = old.provenance.digests.model_dump(), new.provenance.digests.model_dump()
    return [
        ValueChange(name, before[name], after[name], meaning)
        for name, meaning in MEANINGS.items()
        if before[name] != after[name]
    ]


def _versions(old: Provenance, new: Provenance) -> list[ValueChange]:
    names = ("evaluation_version", "slop_code", "python", "platform")
    before = {name: getattr(old, name) or None for name in names}
    after = {name: getattr(new, name) or None for name in names}
    before |= {f"package {name}": version for name, version in sorted(old.test_dependencies.items())}
    after |= {f"package {name}": version for name, version in sorted(new.test_dependencies.items())}
    values = [ValueChange(name, before.get(name), after.get(name)) for name in dict.fromkeys([*before, *after])]
    return [value for value in values if value.old != value.new]


def _phases(old: CorrectnessResults, new: CorrectnessResults) -> list[TimeChange]:
    phases = [TimeChange(phase, old.phases.get(phase, 0.0), seconds) for phase, seconds in new.phases.items()]
    return [TimeChange("everything", old.duration, new.duration), *phases]


def _slowest(before: dict[str, TestResult], after: dict[str, TestResult], both: list[str]) -> list[TimeChange]:
    times = [TimeChange(name, before[name].duration_ms / 1000, after[name].duration_ms / 1000) for name in both]
    return sorted(times, key=lambda time: -abs(time.new - time.old))[:SLOWEST]
