"""Record of a test that every report format is parsed into, and functions that the parsers share."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Status = Literal["passed", "failed", "skipped", "error"]

MAX_REPORTED_DURATION = 1e11
"""Upper bound of a duration in a report, in any unit."""

XPASSED = "passed unexpectedly: the test is marked xfail"

_STATUS: dict[str, Status] = {
    "passed": "passed",
    "failed": "failed",
    "skipped": "skipped",
    "xfailed": "skipped",
    "xpassed": "failed",
    "error": "error",
}
_COUNTED = (*_STATUS, "pending", "other")


class ReportError(ValueError):
    """A report does not have the format of its plugin; the message says where."""


class CutShortError(ReportError):
    """A report ends before its document does."""


@dataclass(frozen=True, slots=True)
class RawTest:
    nodeid: str
    status: Status
    duration_ms: float
    markers: tuple[str, ...] = ()
    message: str | None = None
    xpassed: bool = False
    """The status is failed, though pytest's exit code counts it as a success."""
    calls: tuple[str, ...] = ()
    output: str | None = None
    refused: tuple[tuple[str, str], ...] = ()
    """Paths that were not handed over to the submission, each with the reason."""


@dataclass(frozen=True, slots=True)
class ParsedReport:
    tests: tuple[RawTest, ...]
    exit_code: int | None
    collection_errors: tuple[str, ...]
    miscounted: tuple[str, str] | None = None
    """Texts about a count in the report's summary and about its tests, if they differ."""


def status_of(outcome: str) -> Status:
    """Unknown outcomes are errors, so they can never count as passes."""
    return _STATUS.get(outcome, "error")


def load_object(data: bytes) -> dict[str, Any]:
    """Parses arbitrary bytes as a JSON object; NaN and Infinity become null."""
    try:
        document = json.loads(data.decode("utf-8"), parse_constant=lambda _: None)
    except UnicodeDecodeError as error:
        raise ReportError("not UTF-8") from error
    except json.JSONDecodeError as error:
        if not data.rstrip().endswith(b"}") or error.pos >= len(error.doc.rstrip()):
            raise CutShortError(f"ends at byte {len(data)} within the document") from error
        raise ReportError(f"no JSON at character {error.pos}: {error.msg}") from error
    except (RecursionError, MemoryError) as error:
        raise ReportError("nested too deeply") from error
    except ValueError as error:
        raise ReportError(f"a number that cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise ReportError("not a JSON object")
    return document


def member(parent: dict[str, Any], key: str, kind: type, where: str) -> Any:
    value = parent.get(key)
    if not isinstance(value, kind):
        fault = "missing" if key not in parent else f"{type(value).__name__}, not {kind.__name__}"
        raise ReportError(f"{where}: {key} is {fault}")
    return value


def objects(parent: dict[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    items: list[Any] = member(parent, key, list, where)
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise ReportError(f"{where}: {key}[{index}] is {type(item).__name__}, not dict")
    return items


def optional_text(parent: dict[str, Any], key: str) -> str | None:
    value = parent.get(key)
    return value if isinstance(value, str) and value else None


def duration_in(parent: dict[str, Any], key: str, where: str) -> float:
    """Zero for a duration that is missing, negative or above MAX_REPORTED_DURATION."""
    value = parent.get(key, 0)
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ReportError(f"{where}: {key} is {type(value).__name__}, not a number")
    try:
        duration = float(value)
    except OverflowError:
        return 0.0
    return duration if 0 < duration <= MAX_REPORTED_DURATION else 0.0


def require_unique(tests: Iterable[RawTest]) -> tuple[RawTest, ...]:
    seen: dict[str, RawTest] = {}
    for test in tests:
        if test.nodeid in seen:
            raise ReportError(f"{test.nodeid} is reported twice")
        seen[test.nodeid] = test
    return tuple(seen.values())


def count_mismatch(outcomes: Iterable[str], summary: Any, total: str) -> tuple[str, str] | None:
    """`total` is the key of the number of all tests. A report without a summary is not miscounted."""
    if not isinstance(summary, dict):
        return None
    counts = Counter(outcomes)
    for name, count in [(total, counts.total()), *((name, counts[name]) for name in _COUNTED)]:
        stated = summary.get(name, 0)
        if type(stated) is not int or stated != count:
            shown = stated if isinstance(stated, int) else type(stated).__name__
            return f"{shown} {name} in its summary", f"{count} among its tests"
    return None
