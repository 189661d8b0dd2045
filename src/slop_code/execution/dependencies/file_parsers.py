"""Parsers for TOML and INI files of submissions, which are hostile.

The time and memory that Python's parsers take can grow with the square of a file's size. Files for which that would
matter are parsed in a process of their own, with limits.
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

MAX_TOML_STEPS = 1_000_000
"""A file with more `_toml_steps` is parsed in another process; this many take at most a second."""

MAX_DEPTH = 50
"""Tables and lists of TOML inside each other, so that no recursive function fails later."""

MAX_INI_LENGTH = 2000
"""Characters of INI that is parsed in this process. Both long gaps and many mistakes make Python's parser slow."""

PARSE_S = 600.0
"""Seconds until the parser's process is given up; PARSE_CPU_S ends it earlier."""

PARSE_CPU_S = 5
"""Seconds of processor time for one file."""

LIMITED_PARSER = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[3]), int(sys.argv[3])))
with open(sys.argv[2], encoding="utf-8", newline="") as file:
    text = file.read()
if sys.argv[1] == "toml":
    import tomllib
    parsed = tomllib.loads(text)
else:
    import configparser
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    parsed = parser.get("options", "install_requires", fallback="")
print(json.dumps(parsed, default=str))
"""


@functools.lru_cache(maxsize=8)
def parse_toml(text: str) -> dict[str, Any] | None:
    """The parsed text, or None if it cannot be parsed within the limits."""
    if _toml_steps(text) > MAX_TOML_STEPS:
        parsed = _parse_apart("toml", text)
    else:
        try:
            parsed = tomllib.loads(text)
        except (ValueError, RecursionError):
            return None
    return parsed if isinstance(parsed, dict) and _is_shallow(parsed) else None


def _toml_steps(text: str) -> int:
    """An upper bound, up to a factor, of the tables that the parser looks up.

    For each part of a key `a.b.c` it walks from the root, through the parts of the header `[x.y]` first. Both are on
    one line, and only `\\n` ends a line of TOML: the other line ends of `splitlines` can be in a quoted part.
    """
    return text.count(".") * max(line.count(".") for line in text.split("\n"))


def _is_shallow(parsed: dict[str, Any]) -> bool:
    level: list[Any] = [parsed]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for value in level
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, dict | list)
        ]
    return not level


@functools.lru_cache(maxsize=8)
def install_requires(setup_cfg: str) -> str | None:
    """`install_requires` in `[options]`. Empty if there is none, None if parsing exceeds the limits or fails."""
    if len(setup_cfg) > MAX_INI_LENGTH:
        parsed = _parse_apart("ini", setup_cfg)
        return parsed.strip() if isinstance(parsed, str) else None
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(setup_cfg)
    except configparser.Error:
        return None
    return parser.get("options", "install_requires", fallback="").strip()


def _parse_apart(kind: str, text: str) -> Any:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        done = capture([sys.executable, "-I", "-S", "-c", LIMITED_PARSER, kind, file.name, str(PARSE_CPU_S)], PARSE_S)
    try:
        return json.loads(done.output) if done.exit_code == 0 else None
    except (ValueError, RecursionError):
        return None
