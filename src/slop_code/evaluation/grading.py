"""Grading: from the roster and the evidence of all pairs to a result per test, and to why there is no verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, get_args

from slop_code.evaluation.evidence import Evidence, ReportSource
from slop_code.evaluation.groups import group_for
from slop_code.evaluation.infrastructure import infrastructure_failure
from slop_code.evaluation.report import TestResult
from slop_code.evaluation.reports.raw_test import RawTest, visible
from slop_code.evaluation.roster import Roster, RosterEntry
from slop_code.evaluation.selection import checkpoint_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from slop_code.evaluation.groups import GroupType

MESSAGE_LIMIT = 16 * 1024
REASON_LIMIT = 16 * 1024
CALL_LIMIT = 2 * 1024
MAX_CALLS = 32
NO_TESTS = 5
NOT_IN_ROSTER = "not in the roster of this checkpoint's tests"
NO_RESULT = "left no result"


@dataclass(frozen=True, slots=True)
class GradingRules:
    """The facts about a problem and a command that grades depend on."""

    checkpoints: Sequence[str]
    """In their order."""

    current: str
    group_of: Callable[[str, Sequence[str], str], GroupType]
    """The group of a test by its checkpoint, its markers and the current checkpoint."""

    pytest_args: Sequence[str] = ()

    @classmethod
    def with_markers(
        cls,
        checkpoints: Sequence[str],
        current: str,
        custom: Mapping[str, GroupType],
        pytest_args: Sequence[str] = (),
    ) -> GradingRules:
        return cls(checkpoints, current, lambda home, markers, now: group_for(home, markers, now, custom), pytest_args)


@dataclass(frozen=True, slots=True)
class Grade:
    tests: list[TestResult]
    exit_code: int
    infrastructure_failure: str | None
    """The reason."""

    deselected: int
    source: ReportSource


def grade(evidence: Sequence[Evidence], roster: Roster, rules: GradingRules) -> Grade:
    """Every test of the roster once, in its order; then the tests that the roster does not have.

    An evaluation ends with this function, and the verification of a stored result begins with it.
    """
    # Without pytest arguments, only the tests themselves can have deselected tests, and that counts for nothing.
    pairs = list(evidence) if rules.pytest_args else [pair.without_deselection() for pair in evidence]
    reasons = [infrastructure_failure(pair) for pair in pairs]
    messages = [_with_output(reason, pair) for reason, pair in zip(reasons, pairs, strict=True)]
    tests = [
        test
        for pair, message in zip(pairs, messages, strict=True)
        for test in _tests(pair, _own_tests(pair, roster), rules, message or NO_RESULT)
    ]
    deciding = _deciding(pairs)
    reason = _reason(deciding, reasons, messages)
    return Grade(
        tests=_in_order(roster, tests),
        exit_code=_exit_code([pairs[index].exit_code for index in deciding]),
        infrastructure_failure=None if reason is None else visible(reason, REASON_LIMIT),
        deselected=len(_deselected(pairs, roster) & roster.nodeids),
        source=max((pair.source for pair in pairs), key=get_args(ReportSource).index),
    )


def _with_output(reason: str | None, pair: Evidence) -> str | None:
    """What pytest printed last explains a run without any result."""
    output = "" if pair.tests or pair.error is not None else pair.log.strip()
    return f"{reason}\n{output}" if reason and output else reason


def _own_tests(pair: Evidence, roster: Roster) -> dict[str, RawTest]:
    """A pair has no say in the tests of another."""
    others = roster.nodeids - pair.roster.nodeids
    return {test.nodeid: test for test in pair.tests if test.nodeid not in others}


def _tests(pair: Evidence, reported: dict[str, RawTest], rules: GradingRules, missing: str) -> list[TestResult]:
    """Markers are the roster's: the keywords of a report hold names of functions and files too."""
    graded: list[tuple[RosterEntry, RawTest]] = []
    for entry in pair.roster.entries:
        raw = reported.get(entry.nodeid)
        if raw is None and entry.nodeid in pair.deselected:
            continue
        message = f"{missing} (this test was running)" if entry.nodeid == pair.running else missing
        graded.append((entry, raw or RawTest(entry.nodeid, "error", 0.0, message=message)))
    known = pair.roster.nodeids
    for nodeid, raw in reported.items():
        if nodeid in known:
            continue
        stranger = RawTest(nodeid, "error", raw.duration_ms, message=NOT_IN_ROSTER)
        graded.append((RosterEntry(nodeid, ()), stranger))
    return [_result(entry, raw, rules) for entry, raw in graded]


def _result(entry: RosterEntry, raw: RawTest, rules: GradingRules) -> TestResult:
    file_path, _, name = entry.nodeid.partition("::")
    file = PurePosixPath(file_path)
    checkpoint = checkpoint_of(file.name, rules.checkpoints) or file.stem.removeprefix("test_")
    passed = raw.status == "passed"
    return TestResult(
        id=name,
        checkpoint=checkpoint,
        group_type=rules.group_of(checkpoint, entry.markers, rules.current),
        status=raw.status,
        duration_ms=raw.duration_ms,
        file_path=file_path,
        markers=list(entry.markers),
        failure_message=None if passed or raw.message is None else visible(raw.message, MESSAGE_LIMIT),
        calls=[] if passed else [visible(call, CALL_LIMIT) for call in raw.calls[:MAX_CALLS]],
        output=None if passed or raw.output is None else visible(raw.output, MESSAGE_LIMIT),
    )


def _in_order(roster: Roster, tests: Iterable[TestResult]) -> list[TestResult]:
    """As a single pair would list them."""
    by_name: dict[tuple[str, str], TestResult] = {}
    for test in tests:
        by_name.setdefault((test.file_path, test.id), test)
    keys = [entry.nodeid.partition("::")[::2] for entry in roster.entries]
    return [by_name.pop(key) for key in keys if key in by_name] + list(by_name.values())


def _deciding(pairs: Sequence[Evidence]) -> list[int]:
    """The pairs that had tests to run: pytest arguments may leave a pair with none; all, if they left none to any."""
    empty = [pair.exit_code == NO_TESTS and pair.roster.nodeids <= pair.deselected for pair in pairs]
    return [index for index in range(len(pairs)) if not empty[index]] or list(range(len(pairs)))


def _exit_code(codes: Sequence[int]) -> int:
    """As of a single pytest: the first that says more than that tests failed, else whether any did."""
    return next((code for code in codes if code not in (0, 1)), max(codes))


def _reason(deciding: Sequence[int], reasons: Sequence[str | None], messages: Sequence[str | None]) -> str | None:
    """With the number of the pair, unless all pairs have the same reason."""
    failed = [index for index in deciding if reasons[index] is not None]
    if not failed:
        return None
    if len({reasons[index] for index in deciding}) == 1:
        return messages[failed[0]]
    return "\n".join(f"pair {index + 1} of {len(reasons)}: {messages[index]}" for index in failed)


def _deselected(pairs: Sequence[Evidence], roster: Roster) -> frozenset[str]:
    """By pytest arguments, and those that no pair was to run."""
    assigned: frozenset[str] = frozenset().union(*[pair.roster.nodeids for pair in pairs])
    return frozenset().union(*[pair.deselected for pair in pairs]) | (roster.nodeids - assigned)
