"""The evaluation.json of the SlopCodeBench runner, read as our result."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from slop_code._safe_text import escape_control
from slop_code.evaluation.evidence import NEVER_RAN
from slop_code.evaluation.grading import MESSAGE_LIMIT
from slop_code.evaluation.groups import GroupType, group_for
from slop_code.evaluation.infrastructure import collection_failure
from slop_code.evaluation.report import CorrectnessResults, TestResult
from slop_code.evaluation.reports.raw_test import RawTest, Status
from slop_code.evaluation.result_files.stored_record import MAX_DURATION
from slop_code.runs.scb.scb_report import (
    EVALUATION_DIR,
    MAX_NAME_LENGTH,
    MAX_TESTS,
    REPORT_FILE,
    ReportedTests,
    read_report,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from slop_code.evaluation.reports.raw_test import ParsedReport

EVIDENCE = "slopcodebench"
"""`evidence` of a result that was read from files of the SlopCodeBench runner."""
RUNNER = "the SlopCodeBench runner"
REQUIRED = (
    "problem_name", "problem_version", "checkpoint_name", "checkpoint_version", "tests", "pass_counts", "total_counts",
    "pytest_exit_code", "pytest_collected", "infrastructure_failure",
)  # fmt: skip
MAX_KEYS = 500
"""Of `tests`: checkpoints with their groups."""
FACTS_NOT_RECORDED = f"evaluated by {RUNNER}: isolation, environment, versions and digests are not recorded"
_STATUSES: dict[str, Status] = {"passed": "passed", "failed": "failed", "skipped": "skipped"}
_SEVERITY: tuple[Status, ...] = ("passed", "skipped", "failed", "error")
_UNLISTED = "has a result in report.json, and is not listed in evaluation.json"


class NotScbError(ValueError):
    """A document does not have the format of the SlopCodeBench runner; the message says where."""


@dataclass(frozen=True, slots=True)
class ScbResult:
    results: CorrectnessResults
    """Skipped tests count as not passed, as in every result of slop-code."""

    pass_counts: Mapping[str, Any]
    total_counts: Mapping[str, Any]
    """As the file says; skipped tests are left out of them."""

    expected_exit_code: int
    """Of pytest, as it follows from the lists of the file."""

    contradictions: list[tuple[str, str, str]] = field(default_factory=list)
    """Tests with their status in evaluation.json and in report.json, where these differ."""


@dataclass(frozen=True, slots=True)
class _ListedTest:
    home: str
    group: GroupType
    name: str
    status: Status


def scb_result(document: Mapping[str, Any], folder: Path) -> ScbResult:
    """`folder` is that of the file that has the document. Raises NotScbError."""
    if missing := [name for name in REQUIRED if name not in document]:
        raise NotScbError(f"{missing[0]} is missing")
    version = document.get("schema_version")
    if type(version) is not int or version < 1:
        raise NotScbError("schema_version is not a number from 1")
    checkpoint = _text(document, "checkpoint_name")
    listed = list(_listed(_object(document, "tests")))
    report = read_report(folder)
    reported = None if isinstance(report, str) else report.tests
    pool = ReportedTests(reported or (), {checkpoint, *(test.home for test in listed)})
    contradictions: list[tuple[str, str, str]] = []
    matches = [(test, pool.take(test.home, test.name, test.status)) for test in listed]
    tests = [_test(test, raw, contradictions, reported=reported is not None) for test, raw in matches]
    tests += [_unlisted(home, raw, checkpoint, contradictions) for home, raw in pool.rest()]
    _check_unique(tests)
    code, expected = document["pytest_exit_code"], int(any(test.status in ("failed", "error") for test in listed))
    results = CorrectnessResults(
        problem_name=_text(document, "problem_name"),
        checkpoint_name=checkpoint,
        duration=_seconds(document.get("duration")),
        tests=tests,
        pytest_exit_code=code if type(code) is int and abs(code) < 2**31 else NEVER_RAN,
        infrastructure_failure_reason=_failure(document, tests, expected) or _report_failure(document, report),
        evidence=EVIDENCE,
        warnings=[*_warnings(report, contradictions), *_count_warnings(document, listed, len(tests))],
    )
    counts = _object(document, "pass_counts"), _object(document, "total_counts")
    return ScbResult(results, *counts, expected, contradictions)


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document[name]
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME_LENGTH:
        raise NotScbError(f"{name} is not a text of at most {MAX_NAME_LENGTH} characters")
    return value


def _object(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = document[name]
    if not isinstance(value, dict):
        raise NotScbError(f"{name} is {type(value).__name__}, not an object")
    return value


def _seconds(value: Any) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_DURATION
    return float(value) if known else 0.0


def _listed(tests: Mapping[str, Any]) -> Iterator[_ListedTest]:
    """A test in a list of another name than the three known ones is an error, so that it never counts as passed."""
    count = 0
    if len(tests) > MAX_KEYS:
        raise NotScbError(f"tests: more than {MAX_KEYS} checkpoints and groups")
    for key in tests:
        home, _, group = key.rpartition("-")
        if not 0 < len(home) <= MAX_NAME_LENGTH or group not in [*GroupType]:
            raise NotScbError(f"tests: {key[:100]!r} is not a checkpoint and a group, such as checkpoint_1-Core")
        for status, names in _object(tests, key).items():
            if not isinstance(names, list):
                raise NotScbError(f"tests: {status[:100]!r} of {key!r} is {type(names).__name__}, not a list")
            count += len(names)
            if count > MAX_TESTS:
                raise NotScbError(f"tests: more than {MAX_TESTS} tests")
            for name in names:
                if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_LENGTH:
                    raise NotScbError(f"tests: {key!r} lists what is no id of at most {MAX_NAME_LENGTH} characters")
                yield _ListedTest(home, GroupType(group), name, _STATUSES.get(status, "error"))


def _test(
    listed: _ListedTest, raw: RawTest | None, contradictions: list[tuple[str, str, str]], *, reported: bool
) -> TestResult:
    """Where the two files differ, the worse status counts. `reported`: there is a report, with or without this test."""
    file, status = f"test_{listed.home}.py", listed.status
    if raw is None and reported and status == "passed":
        status = "error"
        contradictions.append((f"{file}::{listed.name}", listed.status, "missing"))
    if raw is not None:
        file = raw.nodeid.partition("::")[0]
        status = max(listed.status, raw.status, key=_SEVERITY.index)
        # Errors are listed as failed there, and ours alone counts an unexpected pass as a failure.
        expected = raw.status == listed.status or (listed.status, raw.status) == ("failed", "error") or raw.xpassed
        contradictions += [] if expected else [(f"{file}::{listed.name}", listed.status, raw.status)]
    return _result(listed, file, status, raw)


def _unlisted(home: str, raw: RawTest, current: str, contradictions: list[tuple[str, str, str]]) -> TestResult:
    """A skipped test may be in neither list; any other test that evaluation.json does not know never passes."""
    file, _, name = raw.nodeid.partition("::")
    status: Literal["skipped", "error"] = "skipped" if raw.status == "skipped" else "error"
    if status == "error":
        contradictions.append((raw.nodeid, "not listed", raw.status))
        raw = RawTest(raw.nodeid, status, raw.duration_ms, raw.markers, _UNLISTED)
    return _result(_ListedTest(home, group_for(home, raw.markers, current, {}), name, status), file, status, raw)


def _result(listed: _ListedTest, file: str, status: Status, raw: RawTest | None) -> TestResult:
    message = raw.message if raw and status != "passed" else None
    return TestResult(
        id=listed.name,
        checkpoint=listed.home,
        group_type=listed.group,
        status=status,
        duration_ms=raw.duration_ms if raw else 0.0,
        file_path=file,
        markers=list(raw.markers) if raw else [],
        failure_message=None if message is None else escape_control(message, MESSAGE_LIMIT),
    )


def _check_unique(tests: list[TestResult]) -> None:
    seen: set[tuple[str, str]] = set()
    for test in tests:
        if (test.file_path, test.id) in seen:
            unknown = f"{EVALUATION_DIR}/{REPORT_FILE} does not say which files they are in"
            raise NotScbError(f"tests: {test.id[:100]!r} of {test.checkpoint} is listed twice, and {unknown}")
        seen.add((test.file_path, test.id))


def _failure(document: Mapping[str, Any], tests: list[TestResult], expected_code: int) -> str | None:
    """The rules of slop-code: without all tests, and with an exit code that does not fit them, there is no verdict."""
    code = document["pytest_exit_code"]
    shown = code if type(code) is int else "none"
    if document["infrastructure_failure"] is not False:
        return f"{RUNNER} recorded an infrastructure failure (pytest's exit code: {shown})"
    if type(code) is not int or code not in (0, 1):
        return f"{RUNNER} recorded the exit code {shown} of pytest, which is neither 0 nor 1"
    if not tests:
        return f"{RUNNER} recorded no test"
    if code != expected_code:
        return f"pytest's exit code is {code}, and {expected_code} follows from the tests"
    collected = _collected(document)
    if collected is None:
        return f"{RUNNER} did not record how many tests pytest collected"
    lost = collected - len(tests)
    return f"{lost} of the {collected} tests that pytest collected have no result" if lost > 0 else None


def _report_failure(document: Mapping[str, Any], report: ParsedReport | str) -> str | None:
    if isinstance(report, str):
        return None
    code = document["pytest_exit_code"]
    if report.exit_code not in (None, code):
        return f"pytest's exit code is {code}, and {report.exit_code} in {REPORT_FILE}"
    if report.miscounted:
        return f"{REPORT_FILE}: {report.miscounted[0]}, and {report.miscounted[1]}"
    return collection_failure(code, report.collection_errors)


def _collected(document: Mapping[str, Any]) -> int | None:
    count = document["pytest_collected"]
    return count if type(count) is int and 0 <= count < 2**53 else None


def _warnings(report: ParsedReport | str, contradictions: list[tuple[str, str, str]]) -> Iterator[str]:
    yield FACTS_NOT_RECORDED
    if isinstance(report, str):
        lost = "failure messages, times and file names are not recorded, and errors are shown as failures"
        yield f"{EVALUATION_DIR}/{REPORT_FILE} {report}: {lost}"
    if contradictions:
        name, listed, status = contradictions[0]
        first = f"{name} is {listed} there and {status} in {REPORT_FILE}"
        yield f"{len(contradictions)} statuses differ between the files, the first: {first}; the worse counts"


def _count_warnings(document: Mapping[str, Any], listed: list[_ListedTest], tests: int) -> Iterator[str]:
    """`tests` is the number of those with a result. Skipped tests are left out of the counts of that runner."""
    collected = _collected(document)
    if collected is not None and collected < tests:
        yield f"pytest collected {collected} tests, and {tests} have a result"
    counted = [test for test in listed if test.status != "skipped"]
    passed = Counter(test.group for test in counted if test.status == "passed")
    for name, counts in (("pass_counts", passed), ("total_counts", Counter(test.group for test in counted))):
        stored = _object(document, name)
        if any(stored.get(group, 0) != counts[group] for group in GroupType):
            yield f"{name} does not follow from the tests; the tests count"
