"""Text and figures for people: escaping, truncation, numbers, durations. Nothing here prints."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from slop_code._safe_text import escape_control
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import RatePolicy, pass_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sized

    from slop_code.reporting.terminal import StyledLine
    from slop_code.runs.checkpoint_lines import CheckpointLine
    from slop_code.runs.summary import Totals

NOT_RECORDED = "not recorded"
NO_VALUE = "-"
"""In a cell of a table."""
JSON_HAS_ALL = "; --json has them all"
LINE_WIDTH = 500
"""Characters of a name, a reason or another text within a line."""
TEXT_BYTES = 64 * 1024
"""Bytes of a text in a file."""
GROUP_HEADINGS = {
    GroupType.CORE: "core",
    GroupType.FUNCTIONALITY: "funct.",
    GroupType.ERROR: "error",
    GroupType.REGRESSION: "regr.",
}


def printable(text: str) -> str:
    """Control characters as escapes, so that no output of a submission reaches the terminal as a command."""
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def truncate(line: str, width: int = LINE_WIDTH) -> str:
    return line if len(line) <= width else f"{line[:width]} [... {len(line) - width} characters]"


def one_line(text: str) -> str:
    """Printable and truncated, with line breaks and tabs as escapes."""
    return truncate(printable(text).replace("\n", "\\n").replace("\t", "\\t"))


def first_line(text: str) -> str:
    return one_line(next((line for line in text.split("\n") if line.strip()), "").strip())


def file_safe(text: str) -> str:
    """For a file: bounded, and without characters that control a terminal or that XML cannot hold."""
    if len(text) <= TEXT_BYTES // 4 and text.isprintable():  # as nearly every name is
        return text
    return escape_control(text, TEXT_BYTES)


def has_verdict(line: CheckpointLine) -> bool:
    """Without a verdict, no test is reported as passed or failed."""
    return line.state == "evaluated"


def rates_of(line: CheckpointLine) -> dict[RatePolicy, float | None]:
    """None without a verdict, or without such tests."""
    return {
        policy: pass_rate(policy, line.pass_counts, line.total_counts) if has_verdict(line) else None
        for policy in RatePolicy
    }


def rates_text(totals: Totals) -> str:
    """Solved checkpoints and mean pass rates; empty where no checkpoint was evaluated."""
    planned = totals.checkpoints.planned
    texts = [
        f"{policy} {figures.solved} of {planned} solved (mean {format_percent(figures.mean)})"
        for policy, figures in totals.rates.items()
        if figures.mean is not None
    ]
    return f"rates: {', '.join(texts)}" if texts else ""


def no_verdict_text(line: CheckpointLine) -> str:
    return file_safe(f"no verdict: {line.reason or line.state}")


def more_line(items: Sized, shown: int, rest: str = "", indent: str = "") -> Iterator[StyledLine]:
    """The line below a list of which only the first items are shown."""
    if len(items) > shown:
        yield f"{indent}... and {len(items) - shown} more{rest}", "dim"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def format_size(size: int) -> str:
    power = max(0, min(4, (size.bit_length() - 1) // 10))
    return f"{size / 1024**power:.4g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def format_duration(seconds: float) -> str:
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def format_clock(seconds: float) -> str:
    """As `format_duration`, but narrow enough for a column."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}" if minutes else f"{seconds:.1f} s"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def format_cost(dollars: float) -> str:
    return f"${dollars:,.2f}" if dollars >= 0.1 or dollars == 0 else f"${dollars:.2g}"


def format_tokens(count: float) -> str:
    for power, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= power:
            return f"{count / power:.1f}{unit}"
    return f"{count:.0f}"


def format_percent(share: float) -> str:
    """Rounded, but 100% only for all and 0% only for none."""
    if share <= 0 or share >= 1:
        return "100%" if share >= 1 else "0.0%"
    tenths = math.floor(share * 1000 + 0.5 + 1e-9)
    return f"{min(max(tenths, 1), 999) / 10:.1f}%"


def shell_word(text: str) -> str:
    """Quoted for a shell, without a character that controls a terminal."""
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
