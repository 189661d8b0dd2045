"""Words and figures for people. Text of others is visible and has an end; nothing here draws."""

from __future__ import annotations

import re
import shlex
from itertools import zip_longest
from typing import TYPE_CHECKING

from slop_code.evaluation.reports.raw_test import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.runs.checkpoint_lines import CheckpointLine

LINE_WIDTH = 500
"""Characters of a name, a reason or another text that stands within a line."""
HEADLINE_WIDTH = 300
TEXT_BYTES = 64 * 1024
"""Of one text in a file."""

_LAUNCHER = re.compile(r"'/slop/run', |/slop/run ")
_COMMAND = re.compile(r"(?:[\w.]+: )?ran: ")
"""How a line begins that says what was started, not what came of it."""
_PLACE = re.compile(r"At index \d+ diff: ")
"""How pytest says where long lists differ."""


def printable(text: str) -> str:
    """Control characters as escapes, so that no output of a submission reaches the terminal as a command."""
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def truncate(line: str, width: int = LINE_WIDTH) -> str:
    return line if len(line) <= width else f"{line[:width]} [... {len(line) - width} characters]"


def one_line(text: str) -> str:
    """Printable, for a name or a reason that stands within a line: breaks are escapes too, and it has an end."""
    return truncate(printable(text).replace("\n", "\\n").replace("\t", "\\t"))


def first_line(text: str) -> str:
    return one_line(next((line for line in text.split("\n") if line.strip()), "").strip())


def file_safe(text: str) -> str:
    """For a file: nothing in it that a terminal obeys or that XML cannot hold."""
    if len(text) <= TEXT_BYTES // 4 and text.isprintable():  # as nearly every name is
        return text
    return visible(text, TEXT_BYTES)


def headline(message: str, width: int = HEADLINE_WIDTH) -> str:
    """The line that says most: what was expected and found, else what pytest says first, but not the bare command."""
    lines = message.split("\n")
    marked = [line[1:] for line in lines if line.startswith("E ")]
    told = marked if any(map(str.strip, marked)) else lines
    bare = [line.strip() for line in told if line.strip()] or [""]
    plain = next((line for line in bare if not _COMMAND.match(line)), bare[0])
    if len(plain) > width:
        plain = next((line for line in bare if _PLACE.match(line)), plain)
    said = _LAUNCHER.sub("", _difference(told) or plain)
    return truncate(file_safe(said), width)


def _difference(told: Sequence[str]) -> str | None:
    """The first line in which a block that begins with `expected:` differs from one with `found:` below it."""
    heads = [line.strip() for line in told]
    expected = next((place for place, line in enumerate(heads) if line.startswith("expected:")), None)
    if expected is None:
        return None
    found = next((place for place in range(expected, len(heads)) if heads[place].startswith("found:")), None)
    if found is None:
        return None
    blocks = [_block(told[expected:found], "expected:"), _block(told[found:], "found:")]
    for wanted, came in zip_longest(*blocks, fillvalue=""):
        if wanted != came:
            bare = wanted.strip(), came.strip()
            shown = (repr(wanted), repr(came)) if bare[0] == bare[1] else [text or "nothing" for text in bare]
            return f"expected: {shown[0]}, found: {shown[1]}"
    return None


def _block(lines: Sequence[str], head: str) -> list[str]:
    """Without what stands before its first line, and before each other for that reason."""
    before, _, first = lines[0].partition(head)
    rest = [line.removeprefix(before) for line in lines[1:]]
    while rest and not rest[-1].strip():
        rest.pop()
    return [first.strip(), *rest]


def has_verdict(line: CheckpointLine) -> bool:
    """Where there is no verdict, no test is told as passed or failed."""
    return line.state == "evaluated"


def no_verdict_text(line: CheckpointLine) -> str:
    return file_safe(f"no verdict: {line.reason or line.state}")


def plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def format_duration(seconds: float) -> str:
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


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
