"""How a second evaluation differs from the first: pure functions over two results."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.evaluation.choose import nodeid_of

if TYPE_CHECKING:
    from slop_code.evaluation.report import CorrectnessResults, Provenance, TestResult
    from slop_code.evaluation.reports.record import Status

MEANINGS = {
    "submission": "the code is not the one that was evaluated",
    "tests": "the problem's test files, data or assets have changed",
    "config": "the problem's config.yaml has changed in what can change a verdict",
    "environment": "another environment, or its file has changed; -e names one",
    "image": "the container image is another one",
}
SLOWEST = 5
_ADDRESS = re.compile(r"0x[0-9a-f]{6,16}\b")


@dataclass(frozen=True, slots=True)
class Change:
    what: str
    old: str | None
    new: str | None
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class TestChange:
    __test__ = False

    test: str
    old: Status | None
    """None: it was not there."""

    new: Status | None
    message: bool = False
    """Whether it says something else."""


@dataclass(frozen=True, slots=True)
class Time:
    what: str
    old: float
    new: float
    """Seconds."""


@dataclass(frozen=True, slots=True)
class Changes:
    reasons: tuple[str | None, str | None]
    """Why there is no verdict, then and now."""

    verdicts: list[Change]
    statuses: list[TestChange]
    came: list[TestChange]
    went: list[TestChange]
    messages: list[TestChange]
    """Of tests with the same status that say something else; no difference by itself."""

    digests: list[Change]
    versions: list[Change]
    times: list[Time]
    """Everything, each phase, the tests with the largest change; never a difference."""

    @property
    def same_inputs(self) -> bool:
        return not self.digests and not self.versions

    @property
    def differ(self) -> bool:
        ended = (self.reasons[0] is None) != (self.reasons[1] is None)
        return bool(ended or self.verdicts or self.statuses or self.came or self.went)

    @property
    def flaky(self) -> bool:
        """Whether statuses changed though nothing that went in did."""
        return bool(self.statuses) and self.same_inputs and self.reasons == (None, None)


def changes(old: CorrectnessResults, new: CorrectnessResults, test: TestResult | None = None) -> Changes:
    """`test`: the only one that ran anew, so that only it can be compared."""
    if test is not None:
        old = old.model_copy(update={"tests": [test], "deselected": new.deselected})
    before, after = _by_name(old), _by_name(new)
    both = [name for name in before if name in after]
    pairs = [
        TestChange(name, before[name].status, after[name].status, _says_other(before[name], after[name]))
        for name in both
    ]
    return Changes(
        reasons=(old.infrastructure_failure_reason, new.infrastructure_failure_reason),
        verdicts=[
            Change(policy, _verdict(was), _verdict(new.passed[policy]))
            for policy, was in old.passed.items()
            if was != new.passed[policy]
        ],
        statuses=[pair for pair in pairs if pair.old != pair.new],
        came=[TestChange(name, None, test.status) for name, test in after.items() if name not in before],
        went=[TestChange(name, test.status, None) for name, test in before.items() if name not in after],
        messages=[pair for pair in pairs if pair.old == pair.new and pair.message],
        digests=_digests(old, new),
        versions=_versions(old.provenance, new.provenance),
        times=[*(_phases(old, new) if test is None else []), *_slowest(before, after, both)],
    )


def _by_name(results: CorrectnessResults) -> dict[str, TestResult]:
    return {nodeid_of(test): test for test in results.tests}


def _says_other(old: TestResult, new: TestResult) -> bool:
    """Addresses in memory are others each time."""
    before, after = (_ADDRESS.sub("0x", test.failure_message or "") for test in (old, new))
    return before != after


def _verdict(passed: bool) -> str:
    return "passed" if passed else "not passed"


def _digests(old: CorrectnessResults, new: CorrectnessResults) -> list[Change]:
    before, after = old.provenance.digests.model_dump(), new.provenance.digests.model_dump()
    return [
        Change(name, before[name], after[name], meaning)
        for name, meaning in MEANINGS.items()
        if before[name] != after[name]
    ]


def _versions(old: Provenance, new: Provenance) -> list[Change]:
    names = ("evaluation_version", "slop_code", "python", "platform")
    before = {name: getattr(old, name) or None for name in names}
    after = {name: getattr(new, name) or None for name in names}
    before |= {f"package {name}": version for name, version in sorted(old.test_dependencies.items())}
    after |= {f"package {name}": version for name, version in sorted(new.test_dependencies.items())}
    both = dict.fromkeys([*before, *after])
    return [Change(name, before.get(name), after.get(name)) for name in both if before.get(name) != after.get(name)]


def _phases(old: CorrectnessResults, new: CorrectnessResults) -> list[Time]:
    phases = [Time(phase, old.phases.get(phase, 0.0), seconds) for phase, seconds in new.phases.items()]
    return [Time("everything", old.duration, new.duration), *phases]


def _slowest(before: dict[str, TestResult], after: dict[str, TestResult], both: list[str]) -> list[Time]:
    times = [Time(name, before[name].duration_ms / 1000, after[name].duration_ms / 1000) for name in both]
    return sorted(times, key=lambda time: -abs(time.new - time.old))[:SLOWEST]
