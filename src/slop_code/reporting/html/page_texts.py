"""Text of submissions for a page: escaped, bounded, equal texts stored once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from slop_code.reporting.text import printable, shell_word

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = TypeVar("Item")

HEAD, TAIL = 1500, 2500
"""Characters that are kept of a longer text; at its end pytest prints the expected and the actual value."""

MAX_NAME_LENGTH = 1000
MAX_SHORT_LENGTH = 1000
MAX_TEXTS_LENGTH = 16_000_000
"""Characters of all texts of a checkpoint."""

LEFT_OUT = -1

PageText = str | list[str | int]
"""A whole text, or its head, the number of characters left out, and its tail."""


SHORTER = ((400, 600), (100, 150))
"""Lengths of head and tail, tried in this order where all texts together are too large for a page."""


class TextPool:
    """Texts by number, each stored once."""

    def __init__(self, limit: int = MAX_TEXTS_LENGTH) -> None:
        self._numbers: dict[str, int] = {}
        self._left = limit
        self.all: list[PageText] = []

    def add(self, text: str | None) -> int | None:
        """Number of the text; None without a text, `LEFT_OUT` without room for it."""
        if not text:
            return None
        if text not in self._numbers:
            size = min(len(text), HEAD + TAIL)
            if size > self._left:
                return LEFT_OUT
            self._left -= size
            self._numbers[text] = len(self.all)
            self.all.append(bounded(text))
        return self._numbers[text]


def bounded(text: str) -> PageText:
    left_out = len(text) - HEAD - TAIL
    if left_out <= 0:
        return escaped(text)
    return [escaped(text[:HEAD]), left_out, escaped(text[-TAIL:])]


def shortened(text: PageText, head: int, tail: int) -> PageText:
    """Shortens a text that may be shortened already."""
    if isinstance(text, str):
        if len(text) <= head + tail:
            return text
        first, left_out, last = text, len(text) - head - tail, text
    else:
        first, left_out, last = str(text[0]), int(text[1]), str(text[2])
        left_out += max(0, len(first) - head) + max(0, len(last) - tail)
    return [first[:head], left_out, last[-tail:]]


class UniqueNames:
    """Names as they are shown; a number is added where two of them would be equal."""

    def __init__(self) -> None:
        self._shown: set[str] = set()

    def add(self, whole: str, number: int) -> tuple[str, str | None]:
        """The shown name, and the name quoted for a shell (None where it is too long for the page)."""
        name = name_of(whole)
        if len(whole) > MAX_NAME_LENGTH or name in self._shown:
            name = f"{name} (test {number + 1})"
        while name in self._shown:
            name += "'"
        self._shown.add(name)
        return name, None if len(whole) > MAX_NAME_LENGTH else shell_word(whole)


def escaped(text: str) -> str:
    """Invisible characters become escapes, so that the shown and the copied text are the same."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return printable(text)


def name_of(text: str) -> str:
    """A name on a single line."""
    return _cut(text, MAX_NAME_LENGTH).replace("\n", "\\n").replace("\t", "\\t")


def limited(items: Sequence[Item], limit: int, text: Callable[[Item], str]) -> list[str]:
    """Texts of the first items, and the number of the others."""
    more = len(items) - limit
    return [*map(text, items[:limit]), *([f"... and {more} more"] if more > 0 else [])]


def short(text: str) -> str:
    return _cut(text, MAX_SHORT_LENGTH)


def _cut(text: str, limit: int) -> str:
    kept = escaped(text[:limit])
    return kept if len(text) <= limit else f"{kept} [... {len(text) - limit} characters]"
