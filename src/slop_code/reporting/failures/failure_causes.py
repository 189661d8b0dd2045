"""Tests that did not pass, grouped by cause: the same difference, exception, line on standard error, or limit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.evaluation.failures.error_lines import error_lines
from slop_code.evaluation.failures.message_reason import message_reason
from slop_code.evaluation.failures.reported_error import SYNTAX_ERRORS, ReportedError, reported_error
from slop_code.evaluation.problem.entry_file import no_entry_file
from slop_code.reporting.resource_text import first_limit
from slop_code.reporting.text import file_safe, printable, truncate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.evaluation.report import CorrectnessResults, TestResult

REASON_WIDTH = 160
"""Characters of a reason."""


@dataclass(frozen=True, slots=True)
class FailureCause:
    text: str
    """The reason that all its tests share."""
    tests: tuple[TestResult, ...]
    """In the order of the result; never empty."""


@dataclass(frozen=True, slots=True)
class CheckpointCause:
    text: str
    explained: frozenset[str]
    """Node ids of the tests about which it says all that there is to say."""


def reason_of(test: TestResult) -> str:
    """The reason why a test did not pass; its status where nothing more is known."""
    if (limit := first_limit(test)) is not None:
        return limit
    if not test.failure_message:
        return test.status
    return _reason_text(message_reason(test.failure_message, REASON_WIDTH))


def failure_causes(tests: Sequence[TestResult]) -> list[FailureCause]:
    """Groups of tests that did not pass. The largest group is the first; equal ones keep their order."""
    groups: dict[str, list[TestResult]] = {}
    for test in tests:
        groups.setdefault(reason_of(test), []).append(test)
    causes = [FailureCause(reason, tuple(members)) for reason, members in groups.items()]
    return sorted(causes, key=lambda cause: -len(cause.tests))


def checkpoint_cause(results: CorrectnessResults) -> CheckpointCause | None:
    """None where there are no failures, or where tests failed each for its own reason."""
    failures = not_passed_tests(results)
    reason = results.infrastructure_failure_reason
    reason = results.setup_failure if reason is None else reason
    if reason is not None:
        return CheckpointCause(reason, _nodeids(failures))
    if results.missing_entry_file is not None and _are_most(failures, results.tests):
        return CheckpointCause(no_entry_file(results.missing_entry_file), _nodeids(failures))
    return _syntax_cause(failures, results.tests) or _limit_cause(failures)


def not_passed_tests(results: CorrectnessResults) -> list[TestResult]:
    return [test for test in results.tests if test.status != "passed"]


def _syntax_cause(failures: list[TestResult], tests: list[TestResult]) -> CheckpointCause | None:
    """A syntax error that most tests met. It is only text of the submission, so it explains no other test."""
    met: dict[ReportedError, list[TestResult]] = {}
    for test in failures:
        if (error := syntax_error(test)) is not None:
            met.setdefault(error, []).append(test)
    if not met:
        return None
    error, explained = max(met.items(), key=lambda item: len(item[1]))
    return CheckpointCause(_reason_text(error.text), _nodeids(explained)) if _are_most(explained, tests) else None


def syntax_error(test: TestResult) -> ReportedError | None:
    """Syntax error of the submission in the message of a test."""
    message = test.failure_message or ""
    if not any(name in message for name in SYNTAX_ERRORS):  # as of nearly every test
        return None
    error = reported_error(error_lines(message))
    return error if error is not None and error.syntax_file is not None else None


def _limit_cause(failures: list[TestResult]) -> CheckpointCause | None:
    struck = Counter(reason_of(test) for test in failures if first_limit(test))
    for text, count in struck.most_common(1):
        if count > 1 and 2 * count > len(failures):
            return CheckpointCause(f"{text}, in {count} of {len(failures)} tests that did not pass", frozenset())
    return None


def _are_most(some: list[TestResult], tests: list[TestResult]) -> bool:
    return 2 * len(some) > len(tests)


def _nodeids(tests: list[TestResult]) -> frozenset[str]:
    return frozenset(test.nodeid for test in tests)


def _reason_text(text: str) -> str:
    """Short, printable, and the same for tests that failed for the same reason."""
    return truncate(printable(file_safe(text)), REASON_WIDTH)
