"""The `pytest.ini` that the judge's pytest reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slop_code.evaluation.groups import BUILTIN_MARKERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slop_code.evaluation.config import MarkerConfig


def render_ini(custom: Mapping[str, MarkerConfig], run: Sequence[str]) -> str:
    """Markers are registered and `run` alone is collected; nothing else about the tests changes."""
    texts = {name: text for name, (text, _) in BUILTIN_MARKERS.items()}
    texts |= {name: marker.description for name, marker in custom.items()}
    markers = [f"{name}: {_one_line(text)}".rstrip() for name, text in texts.items()]
    return "\n".join(["[pytest]", *_listed("markers", markers), *_listed("python_files", map(_pattern, run)), ""])


def _listed(key: str, values: Iterable[str]) -> list[str]:
    return [f"{key} =", *(f"    {value}" for value in values)]


def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _pattern(file: str) -> str:
    """pytest splits and matches the value like a shell; a character that either would read is a `?`."""
    return re.sub(r"[^\w./-]", "?", file)
