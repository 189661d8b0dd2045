"""Texts about failed tests: single lines and excerpts, bounded and without control characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code._safe_text import escape_control
from slop_code.evaluation.failures.message_reason import message_reason

if TYPE_CHECKING:
    from slop_code.evaluation.report import TestResult

MAX_LINE_BYTES = 200
MAX_LINES = 20
MAX_DETAIL_BYTES = 4000
VERBS = {"passed": "passes", "failed": "fails", "error": "ends in an error", "skipped": "is skipped"}


def shown_test(test: TestResult | str) -> str:
    return single_line(test if isinstance(test, str) else test.nodeid)


def outcome_verb(test: TestResult) -> str:
    return "is expected to fail" if test.status == "skipped" and "xfail" in test.markers else VERBS[test.status]


def single_line(text: str) -> str:
    return escape_control(" ".join(text.split()), MAX_LINE_BYTES).replace("\n", " ")


def failure_reason(message: str | None) -> str:
    """The reason, as `problems run` shows it."""
    return single_line(message_reason(message or "", MAX_LINE_BYTES)) or "it left no message"


def first_line(text: str) -> str:
    return single_line(text.partition("\n")[0])


def first_lines(message: str | None) -> str:
    return escape_control("\n".join((message or "").splitlines()[:MAX_LINES]), MAX_DETAIL_BYTES)


def last_lines(message: str | None) -> str:
    """Of a failed test: its error is at the end."""
    lines = (message or "").splitlines()
    left = len(lines) - MAX_LINES
    shown = lines if left <= 0 else [f"[... {left + 1} lines before]", *lines[left + 1 :]]
    return escape_control("\n".join(shown), MAX_DETAIL_BYTES)
