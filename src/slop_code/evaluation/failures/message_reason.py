"""The reason of a failed test, as far as its message tells."""

from __future__ import annotations

import re

from slop_code.evaluation.failures.error_lines import error_lines, headline_text
from slop_code.evaluation.failures.reported_error import MAX_LINE_LENGTH, reported_error

_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,16}(?=[^<>\n]{0,100}>)")
"""In the repr of an object only: `<function f at 0x7f…>`. A submission may print addresses of its own."""
_TEST_FOLDER = re.compile(r"/workspace/\.evaluation_tests/|/tmp/pytest-of-[^/\s]+/pytest-\d+/[^/\s'\"]+/?")
"""Folders that say nothing about the failure."""


def message_reason(message: str, width: int) -> str:
    """One line, as it was written; it may be longer than `width`, but a line that says the same takes precedence."""
    lines = error_lines(message)
    error = reported_error(lines)
    text = headline_text(lines, width) if error is None else error.text
    return comparable(text.removeprefix("AssertionError: ").removeprefix("Failed: "))


def comparable(line: str) -> str:
    """Without addresses of objects and the folders that tests write to and read from; the end of a huge line is cut."""
    return _TEST_FOLDER.sub("", without_addresses(line[:MAX_LINE_LENGTH]))


def without_addresses(text: str) -> str:
    """Without the addresses in reprs of objects, which differ between two runs of the same test."""
    return _ADDRESS.sub("", text)
