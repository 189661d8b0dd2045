"""Text from a submission as a page may hold it: visible, bounded, equal texts once."""

from __future__ import annotations

import shlex

from slop_code.reporting.terminal import printable

HEAD, TAIL = 1500, 2500
"""Characters of a longer text that are kept: pytest says at the end what was expected and what came."""

NAME_LIMIT = 1000
SHORT_LIMIT = 1000
TEXTS_LIMIT = 16_000_000
"""Characters of all texts of one checkpoint."""

LEFT_OUT = -1

Text = str | list[str | int]
"""Whole, or its head, the number of characters left out, and its tail."""


class Texts:
    """Texts by number, each once."""

    def __init__(self, limit: int = TEXTS_LIMIT) -> None:
        self._numbers: dict[str, int] = {}
        self._left = limit
        self.all: list[Text] = []

    def add(self, text: str | None) -> int | None:
        """None where there is no text; `LEFT_OUT` where there is no room for it."""
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


def bounded(text: str) -> Text:
    left_out = len(text) - HEAD - TAIL
    if left_out <= 0:
        return visible(text)
    return [visible(text[:HEAD]), left_out, visible(text[-TAIL:])]


def visible(text: str) -> str:
    """What cannot be seen becomes an escape, so that what is shown and what is copied are the same."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return printable(text)


def name_of(text: str) -> str:
    """It stands within a line."""
    return _cut(text, NAME_LIMIT).replace("\n", "\\n").replace("\t", "\\t")


def short(text: str) -> str:
    return _cut(text, SHORT_LIMIT)


def _cut(text: str, limit: int) -> str:
    kept = visible(text[:limit])
    return kept if len(text) <= limit else f"{kept} [... {len(text) - limit} characters]"


def shell_word(text: str) -> str:
    """As a shell reads it back, and without a character that a terminal would take for a command."""
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(map(_escaped, text)) + "'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x80 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
