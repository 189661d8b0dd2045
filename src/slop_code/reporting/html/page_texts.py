"""Text from a submission as a page may hold it: visible, bounded, equal texts once."""

from __future__ import annotations

from slop_code.reporting.text import printable, shell_word

HEAD, TAIL = 1500, 2500
"""Characters of a longer text that are kept: pytest says at the end what was expected and what came."""

NAME_LIMIT = 1000
SHORT_LIMIT = 1000
TEXTS_LIMIT = 16_000_000
"""Characters of all texts of one checkpoint."""

LEFT_OUT = -1

Text = str | list[str | int]
"""Whole, or its head, the number of characters left out, and its tail."""


SHORTER = ((400, 600), (100, 150))
"""Heads and tails where all texts of a page together are too much for it: first these, then none."""


class TextPool:
    """TextPool by number, each once."""

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


def shortened(text: Text, head: int, tail: int) -> Text:
    """Of one that may be cut already."""
    if isinstance(text, str):
        if len(text) <= head + tail:
            return text
        first, left_out, last = text, len(text) - head - tail, text
    else:
        first, left_out, last = str(text[0]), int(text[1]), str(text[2])
        left_out += max(0, len(first) - head) + max(0, len(last) - tail)
    return [first[:head], left_out, last[-tail:]]


class UniqueNames:
    """Names as they are shown, no two of them equal: a number is added where two would be."""

    def __init__(self) -> None:
        self._shown: set[str] = set()

    def add(self, whole: str, number: int) -> tuple[str, str | None]:
        """The name, and the word that a shell reads it from: None where it was too long for the page."""
        name = name_of(whole)
        if len(whole) > NAME_LIMIT or name in self._shown:
            name = f"{name} (test {number + 1})"
        while name in self._shown:
            name += "'"
        self._shown.add(name)
        return name, None if len(whole) > NAME_LIMIT else shell_word(whole)


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
