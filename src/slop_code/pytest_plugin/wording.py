"""What a failure says: bounded, and without anything that a terminal would obey."""

from __future__ import annotations

import difflib
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN = 8 * 1024
COMPARED = 1024 * 1024
LINE = 500
LONG_LINES = 20
SHOWN_LINES = 40
DIFF_LINES = 200
EQUAL_LINES = 3


def cut(text: str, limit: int = SHOWN) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}[... {len(text) - 2 * half} characters left out ...]{text[-half:]}"


def visible(text: str, limit: int = SHOWN) -> str:
    """Control characters as their escapes, but for the ends of lines and tabs."""
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in cut(text, limit))


def told(head: str, *lines: str) -> str:
    return "\n".join([f"{head}: {lines[0]}", *lines[1:]])


def ran(argv: Sequence[str]) -> str:
    return f"ran: {visible(shlex.join(argv))}"


def side_by_side(wanted: str, found: str) -> tuple[list[str], list[str]]:
    """The lines of both texts; of long ones those from the first difference on."""
    left, right = _lines(wanted, found), _lines(found, wanted)
    same = _equal_lines(left, right) if max(len(left), len(right)) > LONG_LINES else 0
    note = [f"[... {same} equal lines ...]"] if same else []
    return note + _first_lines(left[same:]), note + _first_lines(right[same:])


def diff(name: str, wanted: str, found: str) -> str | None:
    """Of long texts, from shortly before the first difference on: what is compared there is bounded, too."""
    left, right = _lines(wanted, found), _lines(found, wanted)
    if max(len(left), len(right)) <= LONG_LINES:
        return None
    begin = max(0, _equal_lines(left, right) - EQUAL_LINES)
    before, after = (lines[begin : begin + DIFF_LINES] for lines in (left, right))
    lines = list(difflib.unified_diff(before, after, n=EQUAL_LINES, lineterm=""))[2:]
    shown = [visible(line, LINE) for line in lines]
    return cut("\n".join([f"difference of {name}, from line {begin + 1} on:", *shown]))


def _lines(text: str, other: str) -> list[str]:
    """White space shows where nothing else differs."""
    text, other = cut(text, COMPARED), cut(other, COMPARED)
    lines = text.split("\n")
    if text != other and text.split() == other.split():
        return [repr(line) for line in lines]
    return lines[:-1] if lines[-1] == "" else lines


def _equal_lines(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(left), len(right)))


def _first_lines(lines: Sequence[str]) -> list[str]:
    more = len(lines) - SHOWN_LINES
    note = [f"[... {more} more lines ...]"] if more > 0 else []
    return [visible(line, LINE) for line in lines[:SHOWN_LINES]] + note
