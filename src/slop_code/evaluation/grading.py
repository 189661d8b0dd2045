"""Grading: a result for each test, or an infrastructure failure, from the roster and the evidence of all pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from slop_code._safe_text import NAME_LIMIT, escape_control
from slop_code.evaluation.evidence import NO_TESTS, Evidence, ReportSource, had_no_memory, had_no_processor
from slop_code.evaluation.groups import GroupType, group_for
from slop_code.evaluation.infrastructure import infrastructure_failure
from slop_code.evaluation.report import RefusedPath, TestAttempt, TestResult
from slop_code.evaluation.reports.raw_test import RawTest
from slop_code.evaluation.roster import Roster, RosterEntry
from slop_code.evaluation.selection import home_of
from slop_code.evaluation.usage.starvation import (
    is_starved,
    lacked_memory,
    lacked_processor,
    starvation_text,
    to_repeat,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from slop_code.evaluation.usage.resources import Resources

MESSAGE_LIMIT = 16 * 1024
REASON_LIMIT = 16 * 1024
CALL_LIMIT = 2 * 1024
MAX_CALLS = 32
PATH_LIMIT = 2 * 1024
MAX_REFUSED = 32
NOT_IN_ROSTER = "not in the roster of this checkpoint's tests"
MEMORY_LIMIT_ENDED_BOX = "memory limit: the kernel ended the submission's box, and no test could run any more"
NO_RESULT = "left no result"
NO_PROCESSOR = "the machine is busy with other work"
NO_MEMORY = "the machine has less free memory than limits.memory allows the submission"


@dataclass(frozen=True, slots=True)
class GradingRules:
    """The facts about a problem and a command that grades depend on."""

    checkpoints: Sequence[str]
    """Names of all checkpoints, in order."""

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

    def home(self, nodeid: str) -> str:
        """The checkpoint that a test belongs to, by the name of its file."""
        return home_of(nodeid.partition("::")[0], self.checkpoints)

    def group_of_entry(self, entry: RosterEntry) -> GroupType:
        return self.group(self.home(entry.nodeid), entry.markers)

    def group(self, home: str, markers: Sequence[str]) -> GroupType:
        """A test in a file of no checkpoint is a regression test; only a report can name such a test."""
        if home != self.current and home not in self.checkpoints:
            return GroupType.REGRESSION
        return self.group_of(home, markers, self.current)


@dataclass(frozen=True, slots=True)
class Grade:
    tests: list[TestResult]
    exit_code: int
    infrastructure_failure_reason: str | None
    setup_failure: str | None
    deselected: int
    source: ReportSource


def grade(evidence: Sequence[Evidence], roster: Roster, rules: GradingRules, repeats: Sequence[Evidence] = ()) -> Grade:
    """Grades every test of the roster once, in the order of the roster, then tests that the roster does not have.

    `repeats`: repetitions of starved tests, in order. Evaluation and verification of a stored result both use this
    function.
    """
    graded = _grade_pairs(evidence, roster, rules)
    for repeat in repeats:
        graded = _with_repeat(graded, repeat, _grade_pairs([repeat], repeat.roster, rules))
    if graded.infrastructure_failure_reason is None and repeats:
        return replace(graded, infrastructure_failure_reason=_still_starved(graded.tests, repeats[-1]))
    return graded


def _still_starved(tests: Sequence[TestResult], repeat: Evidence) -> str | None:
    """Why there is no verdict, if tests were starved again, and the machine really lacked what they needed."""
    causes = (lacked_memory, had_no_memory, NO_MEMORY), (lacked_processor, had_no_processor, NO_PROCESSOR)
    for lacked, is_confirmed, text in causes:
        starved = [test for test in tests if is_starved(test) and lacked(test)]
        if starved and is_confirmed(repeat):
            first = f"{escape_control(starved[0].nodeid, NAME_LIMIT)} {starvation_text(starved[0])}"
            return f"{text}: {len(starved)} of {len(tests)} tests were starved again, the first: {first}"
    return None


def _with_repeat(graded: Grade, repeat: Evidence, again: Grade) -> Grade:
    """If a test was starved, the repetition alone decides it and every other test that did not pass."""
    if graded.infrastructure_failure_reason is not None:
        return graded
    if again.infrastructure_failure_reason is not None:
        reason = f"starved tests could not be repeated: {again.infrastructure_failure_reason}"
        return replace(graded, infrastructure_failure_reason=escape_control(reason, REASON_LIMIT))
    repeated = {test.nodeid: test for test in again.tests if test.nodeid in repeat.roster.nodeids}
    chosen = {test.nodeid for test in to_repeat(graded.tests)} & repeated.keys()
    tests = [_repeated(test, repeated[test.nodeid]) if test.nodeid in chosen else test for test in graded.tests]
    failed = any(test.status in ("failed", "error") for test in tests)
    return replace(graded, tests=tests, exit_code=int(failed))


def _repeated(first: TestResult, second: TestResult) -> TestResult:
    return second.model_copy(update={"attempts": [*first.attempts, TestAttempt.of(first)]})


def _grade_pairs(evidence: Sequence[Evidence], roster: Roster, rules: GradingRules) -> Grade:
    # Without pytest arguments, only the tests' own code can deselect tests, and that is ignored.
    pairs = list(evidence) if rules.pytest_args else [pair.without_deselection() for pair in evidence]
    reasons = [infrastructure_failure(pair) for pair in pairs]
    messages = [_with_output(reason, pair) for reason, pair in zip(reasons, pairs, strict=True)]
    tests = [
        test
        for pair, message in zip(pairs, messages, strict=True)
        for test in _tests(pair, _own_tests(pair, roster), rules, message or NO_RESULT)
    ]
    with_tests = _pairs_with_tests(pairs)
    reason = _reason(with_tests, reasons, messages)
    return Grade(
        tests=_in_order(roster, tests),
        exit_code=_exit_code([pairs[index].exit_code for index in with_tests]),
        infrastructure_failure_reason=None if reason is None else escape_control(reason, REASON_LIMIT),
        setup_failure=next((pair.setup_failure for pair in pairs if pair.setup_failure is not None), None),
        deselected=len(_deselected(pairs, roster) & roster.nodeids),
        source=max((pair.source for pair in pairs), key=get_args(ReportSource).index),
    )


def _with_output(reason: str | None, pair: Evidence) -> str | None:
    """Adds the end of pytest's output if no test has a result, as it explains why."""
    output = "" if pair.tests or pair.error is not None else pair.log.strip()
    return f"{reason}\n{output}" if reason and output else reason


def _own_tests(pair: Evidence, roster: Roster) -> dict[str, RawTest]:
    """The results that this pair reported, without tests that are assigned to other pairs."""
    others = roster.nodeids - pair.roster.nodeids
    return {test.nodeid: test for test in pair.tests if test.nodeid not in others}


def _tests(pair: Evidence, reported: dict[str, RawTest], rules: GradingRules, missing: str) -> list[TestResult]:
    """Markers come from the roster, because the keywords of a report contain names of functions and files too."""
    graded: list[tuple[RosterEntry, RawTest]] = []
    for entry in pair.roster.entries:
        raw = reported.get(entry.nodeid)
        if raw is None and entry.nodeid in pair.deselected:
            continue
        message = f"{missing} (this test was running)" if entry.nodeid == pair.running else missing
        graded.append((entry, raw or _missing_test(entry.nodeid, pair, message)))
    known = pair.roster.nodeids
    for nodeid, raw in reported.items():
        if nodeid in known:
            continue
        unknown = RawTest(nodeid, "error", raw.duration_ms, message=NOT_IN_ROSTER)
        graded.append((RosterEntry(nodeid, ()), unknown))
    return [_result(entry, raw, rules, pair.resources_of(entry.nodeid)) for entry, raw in graded]


def _missing_test(nodeid: str, pair: Evidence, message: str) -> RawTest:
    if pair.setup_failure is not None or nodeid in pair.failed_by_memory_limit:
        return RawTest(nodeid, "failed", 0.0, message=pair.setup_failure or MEMORY_LIMIT_ENDED_BOX)
    return RawTest(nodeid, "error", 0.0, message=message)


def _result(entry: RosterEntry, raw: RawTest, rules: GradingRules, used: Resources) -> TestResult:
    file_path, _, name = entry.nodeid.partition("::")
    checkpoint = rules.home(entry.nodeid)
    passed = raw.status == "passed"
    return TestResult(
        id=name,
        checkpoint=checkpoint,
        group_type=rules.group(checkpoint, entry.markers),
        status=raw.status,
        duration_ms=raw.duration_ms,
        file_path=file_path,
        markers=list(entry.markers),
        failure_message=None if passed or raw.message is None else escape_control(raw.message, MESSAGE_LIMIT),
        calls=[] if passed else [escape_control(call, CALL_LIMIT) for call in raw.calls[:MAX_CALLS]],
        output=None if passed or raw.output is None else escape_control(raw.output, MESSAGE_LIMIT),
        usage=used.usage,
        limits=list(used.limits),
        timeout=None if passed else used.timeout,
        refused_paths=[
            RefusedPath(path=escape_control(path, PATH_LIMIT), reason=escape_control(reason, PATH_LIMIT))
            for path, reason in raw.refused[:MAX_REFUSED]
        ],
    )


def _in_order(roster: Roster, tests: Iterable[TestResult]) -> list[TestResult]:
    """The tests in the order in which a single pair would list them."""
    by_name: dict[tuple[str, str], TestResult] = {}
    for test in tests:
        by_name.setdefault((test.file_path, test.id), test)
    keys = [entry.nodeid.partition("::")[::2] for entry in roster.entries]
    return [by_name.pop(key) for key in keys if key in by_name] + list(by_name.values())


def _pairs_with_tests(pairs: Sequence[Evidence]) -> list[int]:
    """Indexes of the pairs that had tests to run; of all pairs, if pytest arguments deselected every test."""
    empty = [pair.exit_code == NO_TESTS and pair.roster.nodeids <= pair.deselected for pair in pairs]
    return [index for index in range(len(pairs)) if not empty[index]] or list(range(len(pairs)))


def _exit_code(codes: Sequence[int]) -> int:
    """The first exit code other than 0 and 1; else 1 if any pair has it, else 0."""
    return next((code for code in codes if code not in (0, 1)), max(codes))


def _reason(with_tests: Sequence[int], reasons: Sequence[str | None], messages: Sequence[str | None]) -> str | None:
    """The reasons of all failed pairs, each with the number of its pair unless all are the same."""
    failed = [index for index in with_tests if reasons[index] is not None]
    if not failed:
        return None
    if len({reasons[index] for index in with_tests}) == 1:
        return messages[failed[0]]
    return "\n".join(f"pair {index + 1} of {len(reasons)}: {messages[index]}" for index in failed)


def _deselected(pairs: Sequence[Evidence], roster: Roster) -> frozenset[str]:
    """Tests that pytest arguments deselected, and tests that are assigned to no pair."""
    assigned: frozenset[str] = frozenset().union(*[pair.roster.nodeids for pair in pairs])
    return frozenset().union(*[pair.deselected for pair in pairs]) | (roster.nodeids - assigned)
