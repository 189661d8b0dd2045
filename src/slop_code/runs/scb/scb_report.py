"""Tests in the report.json of a SlopCodeBench result, found by checkpoint and id."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from slop_code._io import TooLargeError, read_bounded
from slop_code.evaluation.evidence import REPORT_LIMIT
from slop_code.evaluation.groups import BUILTIN_MARKERS, PYTEST_MARKERS
from slop_code.evaluation.reports.json_report import parse_json_document
from slop_code.evaluation.reports.raw_test import RawTest, ReportError, load_object
from slop_code.evaluation.selection import home_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from slop_code.evaluation.reports.raw_test import ParsedReport, Status

EVALUATION_DIR = "evaluation"
REPORT_FILE = "report.json"
TESTS_FOLDER = "tests"
MAX_TESTS = 100_000
MAX_NAME_LENGTH = 4096
_MARKERS = frozenset((*BUILTIN_MARKERS, *PYTEST_MARKERS))


class ReportedTests:
    """The tests of a report that no test of the result was matched with yet."""

    def __init__(self, tests: Iterable[RawTest], checkpoints: set[str]) -> None:
        self._tests: dict[tuple[str, str], dict[Status, deque[RawTest]]] = {}
        for test in tests:
            path, _, name = test.nodeid.partition("::")
            self._tests.setdefault((home_of(path, checkpoints), name), {}).setdefault(test.status, deque()).append(test)

    def take(self, home: str, name: str, status: Status) -> RawTest | None:
        """Of several files of a checkpoint with the same id, one with this status if there is any."""
        by_status = self._tests.get((home, name), {})
        tests = by_status.get(status) or next(filter(None, by_status.values()), None)
        return tests.popleft() if tests else None

    def rest(self) -> Iterator[tuple[str, RawTest]]:
        """The tests that were not taken, each with its checkpoint."""
        for (home, _), by_status in self._tests.items():
            yield from ((home, test) for tests in by_status.values() for test in tests)


def read_report(folder: Path) -> ParsedReport | str:
    """The report in a checkpoint's folder, the files of its tests relative to the tests folder; or why not."""
    path = folder / EVALUATION_DIR / REPORT_FILE
    if path.parent.is_symlink():
        return "its folder is a link"
    try:
        document = load_object(read_bounded(path, REPORT_LIMIT))
        report = parse_json_document(document)
    except TooLargeError:
        return f"is larger than {REPORT_LIMIT // 1024**2} MiB"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except ReportError as error:
        return f"is no report of pytest-json-report: {error}"
    if len(report.tests) > MAX_TESTS or any(len(test.nodeid) > MAX_NAME_LENGTH for test in report.tests):
        return f"has more than {MAX_TESTS} tests, or a name of more than {MAX_NAME_LENGTH} characters"
    keywords = [_keywords(entry) for entry in document["tests"]]
    tests = (
        replace(test, nodeid=_within_tests(test.nodeid), markers=_markers(test.nodeid, words))
        for test, words in zip(report.tests, keywords, strict=True)
    )
    return replace(report, tests=tuple(tests))


def _within_tests(nodeid: str) -> str:
    file, separator, name = nodeid.partition("::")
    _, inside, path = f"/{file}".rpartition(f"/{TESTS_FOLDER}/")
    return (path if inside else file) + separator + name


def _keywords(entry: dict[str, Any]) -> list[Any]:
    words = entry.get("keywords")
    return words if isinstance(words, list) else []


def _markers(nodeid: str, keywords: list[Any]) -> tuple[str, ...]:
    """Markers that every problem may use. Keywords also hold names and parameters, so the problem's own are unknown."""
    parameters = nodeid.partition("[")[2].removesuffix("]").split("-")
    known = [word for word in keywords if isinstance(word, str) and word in _MARKERS and word not in parameters]
    return tuple(dict.fromkeys(known))
