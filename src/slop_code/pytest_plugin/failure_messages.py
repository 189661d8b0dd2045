"""Texts of failure messages: bounded, and without terminal control sequences."""

from __future__ import annotations

import difflib
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_TEXT = 8 * 1024
MAX_COMPARED = 1024 * 1024
MAX_LINE = 500
MAX_WHOLE_LINES = 20
MAX_SHOWN_LINES = 40
MAX_DIFF_LINES = 200
CONTEXT_LINES = 3


def cut(text: str, limit: int = MAX_TEXT) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}[... {len(text) - 2 * half} characters left out ...]{text[-half:]}"


def escape_unprintable(text: str, limit: int = MAX_TEXT) -> str:
    """Control characters are escaped, except newlines and tabs."""
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in cut(text, limit))


def section(head: str, *lines: str) -> str:
    return "\n".join([f"{head}: {lines[0]}", *lines[1:]])


def command_line(argv: Sequence[str]) -> str:
    return f"ran: {escape_unprintable(shlex.join(argv))}"


def side_by_side(expected: str, actual: str) -> tuple[list[str], list[str]]:
    """The lines of both texts; long texts start at their first difference."""
    left, right = _lines(expected, actual), _lines(actual, expected)
    equal = _equal_lines(left, right) if max(len(left), len(right)) > MAX_WHOLE_LINES else 0
    note = [f"[... {equal} equal lines ...]"] if equal else []
    return note + _first_lines(left[equal:]), note + _first_lines(right[equal:])


def diff(name: str, expected: str, actual: str) -> str | None:
    """A bounded diff of long texts, from shortly before their first difference on; None for short texts."""
    left, right = _lines(expected, actual), _lines(actual, expected)
    if max(len(left), len(right)) <= MAX_WHOLE_LINES:
        return None
    begin = max(0, _equal_lines(left, right) - CONTEXT_LINES)
    before, after = (lines[begin : begin + MAX_DIFF_LINES] for lines in (left, right))
    lines = list(difflib.unified_diff(before, after, n=CONTEXT_LINES, lineterm=""))[2:]
    shown = [escape_unprintable(line, MAX_LINE) for line in lines]
    return cut("\n".join([f"difference of {name}, from line {begin + 1} on:", *shown]))


def _lines(text: str, other: str) -> list[str]:
    """Lines are quoted where only white space differs, so that the difference can be seen."""
    text, other = cut(text, MAX_COMPARED), cut(other, MAX_COMPARED)
    lines = text.split("\n")
    if text != other and text.split() == other.split():
        return [repr(line) for line in lines]
    return lines[:-1] if lines[-1] == "" else lines


def _equal_lines(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((number for number, (before, after) in pairs if before != after), min(len(left), len(right)))


def _first_lines(lines: Sequence[str]) -> list[str]:
    more = len(lines) - MAX_SHOWN_LINES
    note = [f"[... {more} more lines ...]"] if more > 0 else []
    return [escape_unprintable(line, MAX_LINE) for line in lines[:MAX_SHOWN_LINES]] + note
