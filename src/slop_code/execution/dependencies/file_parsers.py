"""Parsers for TOML and INI files of submissions, which are hostile.

The time and memory that Python's parsers take can grow with the square of a file's size. Files of which that may be
true are parsed in a process of their own, with limits.
"""

from __future__ import annotations

import configparser
import functools
import json
import sys
import tempfile
import tomllib
from typing import Any

from slop_code.execution.process import capture

MAX_DOTS = 40
"""In a line of TOML: a key `a.b.c` makes a table for each of its parts."""

MAX_LINE = 1000
"""Characters of a line of INI."""

PARSE_S = 600.0
LIMITED = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
with open(sys.argv[2], encoding="utf-8", newline="") as file:
    text = file.read()
if sys.argv[1] == "toml":
    import tomllib
    parsed = tomllib.loads(text)
else:
    import configparser
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    parsed = {name: dict(parser.items(name)) for name in parser.sections()}
print(json.dumps(parsed, default=str))
"""


@functools.lru_cache(maxsize=8)
def parse_toml(text: str) -> dict[str, Any] | None:
    """None: it cannot be parsed within the limits."""
    if max(map(_dots, text.splitlines()), default=0) > MAX_DOTS:
        return _parse_apart("toml", text)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=8)
def parse_ini(text: str) -> dict[str, dict[str, str]] | None:
    """The keys of each section; None: it cannot be parsed within the limits."""
    if max(map(len, text.splitlines()), default=0) > MAX_LINE:
        return _parse_apart("ini", text)
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error:
        return None
    return {name: dict(parser.items(name)) for name in parser.sections()}


def _dots(line: str) -> int:
    return line.count(".")


def _parse_apart(kind: str, text: str) -> dict[str, Any] | None:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        done = capture([sys.executable, "-I", "-S", "-c", LIMITED, kind, file.name], PARSE_S)
    try:
        parsed = json.loads(done.output) if done.exit_code == 0 else None
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None
