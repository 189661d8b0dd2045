"""Lines of a failure message that say why the test failed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from slop_code._safe_text import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_MESSAGE_LENGTH = 1 << 16
"""Characters of a message that are looked at."""

_COMMAND = re.compile(r"(?:[\w.]+: )?ran: ")
"""Start of a line that names the command and not its result."""
_LIST_DIFFERENCE = re.compile(r"At index \d+ diff: ")
"""Start of the line in which pytest says where long lists differ."""


@dataclass(frozen=True, slots=True)
class OutcomeBlocks:
    """The block of lines that starts with `expected:`, and the block `found:` below it."""

    expected: list[str]
    actual: list[str]

    def difference(self) -> str | None:
        """The first line in which the blocks differ."""
        for expected, actual in zip_longest(self.expected, self.actual, fillvalue=""):
            if expected != actual:
                bare = expected.strip(), actual.strip()
                shown = (repr(expected), repr(actual)) if bare[0] == bare[1] else [text or "nothing" for text in bare]
                return f"expected {shown[0]}, found {shown[1]}"
        return None


def headline_text(lines: Sequence[str], width: int) -> str:
    """The expected and the actual value, else the first line of pytest's error that is not the bare command.

    It may be longer than `width`, but another line that says the same takes precedence then.
    """
    bare = [line.strip() for line in lines if line.strip()] or [""]
    plain = next((line for line in bare if not _COMMAND.match(line)), bare[0])
    if len(plain) > width:
        plain = next((line for line in bare if _LIST_DIFFERENCE.match(line)), plain)
    blocks = outcome_blocks(lines)
    return (blocks and blocks.difference()) or plain


def error_lines(message: str) -> list[str]:
    """The lines that pytest marks with `E`, else all lines; of a huge message, those at its beginning and end."""
    lines = shortened(message, MAX_MESSAGE_LENGTH).split("\n")
    marked = [line[1:] for line in lines if line.startswith("E ")]
    return marked if any(map(str.strip, marked)) else lines


def outcome_blocks(lines: Sequence[str]) -> OutcomeBlocks | None:
    heads = [line.strip() for line in lines]
    start = next((number for number, head in enumerate(heads) if head.startswith("expected:")), None)
    if start is None:
        return None
    middle = next((number for number in range(start, len(heads)) if heads[number].startswith("found:")), None)
    if middle is None:
        return None
    return OutcomeBlocks(_block(lines[start:middle], "expected:"), _block(lines[middle:], "found:"))


def _block(lines: Sequence[str], head: str) -> list[str]:
    """Lines of a block without its head, and without the indentation that its first line has."""
    indent, _, first = lines[0].partition(head)
    rest = [line.removeprefix(indent) for line in lines[1:]]
    while rest and not rest[-1].strip():
        rest.pop()
    return [first.strip(), *rest]
