"""Lock files: the pinned packages, with version and hashes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "src/slop_code/evaluation/test-tools.lock"
QUALITY = ROOT / "src/slop_code/quality/scb-check.lock"
DEVELOPMENT = tuple(ROOT / f"requirements-{name}.lock" for name in ("dev", "test", "release"))
LOCK_GROUPS = ((TOOLS, *DEVELOPMENT), (QUALITY,))
"""Locks of environments of their own pin other versions of the same packages, which pip-audit takes only apart."""

LOCKS = tuple(lock for locks in LOCK_GROUPS for lock in locks)
OWN = "slop-code (pyproject.toml)"

ENTRY = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?: ; (?P<marker>[^\\\n]*[^\\\s]))?", re.M)
VIA = re.compile(r"^ +# +(?:via )?(.+)$", re.M)


@dataclass(frozen=True, slots=True)
class Pinned:
    name: str
    version: str
    marker: str = ""
    """Environment marker, or empty if it is installed everywhere."""

    via: tuple[str, ...] = ()
    """The packages that require it."""

    hashed: bool = True


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read(text: str) -> list[Pinned]:
    matches = list(ENTRY.finditer(text))
    ends = [*[match.start() for match in matches[1:]], len(text)]
    return [
        Pinned(
            canonical(match["name"]),
            match["version"],
            match["marker"] or "",
            tuple(VIA.findall(text, match.end(), end)),
            "--hash=sha256:" in text[match.end() : end],
        )
        for match, end in zip(matches, ends, strict=True)
    ]


def at_run_time(pinned: Iterable[Pinned]) -> list[Pinned]:
    """Direct and indirect dependencies of slop-code itself."""
    packages, names = list(pinned), {OWN}
    while more := {package.name for package in packages if names & set(package.via)} - names:
        names |= more
    return [package for package in packages if package.name in names]
