"""How a test that did not pass is told: in one line, and in its first lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.evaluation.reports.raw_test import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.evaluation.report import TestResult

LINE = 200
LINES = 20
DETAIL = 4000
MOST_NAMES = 3
OUTCOMES = {"passed": "passes", "failed": "fails", "error": "ends in an error", "skipped": "is skipped"}


def named(test: TestResult | str) -> str:
    """Within a line, whatever the name consists of."""
    return in_line(test if isinstance(test, str) else test.nodeid)


def outcome(test: TestResult) -> str:
    return "is expected to fail" if test.status == "skipped" and "xfail" in test.markers else OUTCOMES[test.status]


def in_line(text: str) -> str:
    return visible(" ".join(text.split()), LINE).replace("\n", " ")


def some(names: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def why(message: str | None) -> str:
    """The first line that pytest marks as the error, else the last one there is."""
    lines = [line for line in (message or "").splitlines() if line.strip()]
    marked = [line[1:] for line in lines if line.startswith("E ")]
    return in_line((marked or lines[-1:] or ["it left no message"])[0])


def first_line(text: str) -> str:
    return text.partition("\n")[0]


def first_lines(message: str | None) -> str:
    return visible("\n".join((message or "").splitlines()[:LINES]), DETAIL)
