"""Inline metadata of Python scripts (PEP 723)."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from slop_code.execution.dependencies.file_parsers import parse_toml
from slop_code.execution.dependencies.plain_requirements import LINE_END

START = "# /// script"
END = "# ///"


def script_metadata(text: str) -> dict[str, Any] | None:
    """The TOML in the comments between START and END, empty if there is none, or None if it cannot be parsed.

    It takes time in proportion to the text, unlike the regular expression of the standard.
    """
    lines = [line.rstrip() for line in LINE_END.split(text.removeprefix("\ufeff"))]
    if START not in lines:
        return {}
    first = lines.index(START) + 1
    comments = list(takewhile(lambda line: line == "#" or line.startswith("# "), lines[first:]))
    if END not in comments or START in lines[first + len(comments) :]:
        return None
    last = len(comments) - 1 - comments[::-1].index(END)
    return parse_toml("\n".join(line[2:] for line in comments[:last]))
