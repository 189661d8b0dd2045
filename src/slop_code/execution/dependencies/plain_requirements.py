"""Grammar of requirements, and plain ones: packages of an index, by names and versions that uv can parse."""

from __future__ import annotations

import functools
import re
from typing import Any

NAME = "[A-Za-z0-9](?:[A-Za-z0-9._-]{0,99}[A-Za-z0-9])?"
MARKER_TEXT = re.compile(r"[A-Za-z0-9_ .,'\"()<>=!~*+-]*")
"""Characters of a marker, which can then add no line, comment or address to a requirement."""

_NUMBERS = r"(?:[0-9]{1,9}!)?[0-9]{1,9}(?:\.[0-9]{1,9})"
_SUFFIX = r"(?:[._-]?(?:a|b|c|rc|alpha|beta|pre|preview)[0-9]{0,9})?(?:\.?post[0-9]{1,9})?(?:\.?dev[0-9]{0,9})?"
_VERSION = rf"(?:~=\s*{_NUMBERS}+{_SUFFIX}|[!=]=\s*{_NUMBERS}*(?:\.\*|{_SUFFIX})|[<>]=?\s*{_NUMBERS}*{_SUFFIX})"
_VARIABLE = (
    "(?:python_version|python_full_version|os_name|sys_platform|platform_machine|platform_system"
    "|platform_python_implementation|implementation_name)"
)
_MARKER = rf"{_VARIABLE}\s*(?:[<>]=?|[!=]=)\s*(?:'[A-Za-z0-9._-]{{0,50}}'|\"[A-Za-z0-9._-]{{0,50}}\")"
PLAIN_REQUIREMENT = re.compile(
    rf"{NAME}(?:\s*\[\s*{NAME}(?:\s*,\s*{NAME}){{0,50}}\s*\])?"
    rf"(?:\s*{_VERSION}(?:\s*,\s*{_VERSION}){{0,50}})?"
    rf"(?:\s*;\s*{_MARKER}(?:\s+(?:and|or)\s+{_MARKER}){{0,50}})?"
    r"(?:\s+--hash=sha256:[0-9a-f]{64}){0,1000}",
    re.ASCII,
)
"""Strict, so that uv can parse whatever matches: a failure is then not one of the file."""

LINE_END = re.compile(r"\r\n|\r|\n")
"""The line ends of uv; Python's `splitlines` knows more."""

CONTINUED = re.compile(r"[^#]*[ \t]\\")
"""A line that the next one continues. A comment ends with its line."""

COMMENT = re.compile(r"(?:^|\s)#.*", re.DOTALL)

ARCHIVE = re.compile(r"\.(whl|zip|tar|tgz|tbz|txz|gz|bz2|xz|zst)\b", re.IGNORECASE)


def normal_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def is_name(text: str) -> bool:
    return re.fullmatch(NAME, text) is not None


@functools.lru_cache(maxsize=8)
def plain_lines(requirements: str) -> tuple[str, ...] | None:
    """Well-formed names and versions, without comments: no file, folder, link or option that could install other code.

    The result is None if not all are plain.
    """
    lines = [COMMENT.sub("", line).strip() for line in _with_hashes(requirements)]
    is_plain = all(not line or _is_plain_line(line) for line in lines)
    return tuple(" ".join(line.split()) for line in lines if line) if is_plain else None


def _is_plain_line(line: str) -> bool:
    return PLAIN_REQUIREMENT.fullmatch(line) is not None and not ARCHIVE.search(line)


def _with_hashes(requirements: str) -> list[str]:
    """The lines, each with the hashes that follow it on lines of their own, as pip-compile writes them."""
    lines: list[list[str]] = []
    for line in LINE_END.split(requirements):
        if lines and CONTINUED.fullmatch(lines[-1][-1]) and line.lstrip(" \t").startswith("--hash="):
            lines[-1][-1] = lines[-1][-1][:-1]
            lines[-1].append(line.lstrip())
        else:
            lines.append([line])
    return ["".join(parts) for parts in lines]


def plain_name(dependency: Any) -> str | None:
    """The name in a plain dependency of a project, which has neither comments nor hashes, unlike a line of a file."""
    if not isinstance(dependency, str) or any(text in dependency for text in ("#", "--hash")):
        return None
    name = re.match(NAME, dependency)
    is_line = dependency.splitlines() == [dependency]
    return normal_name(name[0]) if name and is_line and _is_plain_line(dependency.strip()) else None
