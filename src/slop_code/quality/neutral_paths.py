"""Paths of copies for scb-check: plain names, and no two modules with the same name.

scb-check names a module by its packages, the folders with `__init__.py`, and by its file; outside of packages by its
file alone. It counts one function of those with the same qualified name.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code.quality.source_text import PYTHON_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = "sources"
"""Name of the folder with the copies, which is the package of what lies beside `__init__.py` at the top."""

MAX_FOLDER_LENGTH = 120
"""Bytes; scb-check passes all paths to ast-grep in one command."""

_PLAIN_NAME = re.compile(r"(?!_[0-9a-f]{24}$)[A-Za-z0-9_][A-Za-z0-9_+-]{0,59}")
"""A dot would separate packages, and a name like a digest might be that of another file."""

_TOP = PurePosixPath()


def neutral_paths(paths: Sequence[PurePosixPath]) -> dict[PurePosixPath, str]:
    """Plain paths stay as they are, unless a module of the same name is known."""
    packages = {path.parent for path in paths if path.name == "__init__.py"}
    folders = {_TOP: ""}
    modules: set[tuple[str | None, str]] = {(None, ROOT)}

    def module(path: PurePosixPath, name: str) -> str:
        """A name that no other module of the same package has. Outside of packages, it is the name of the module."""
        package = folders[path.parent] if path.parent in packages else None
        name = name if (package, name) not in modules else _digest(str(path))
        modules.add((package, name))
        return name

    for folder in sorted({parent for path in paths for parent in path.parents if parent != _TOP}):
        name = _plain_name(folder.name)
        neutral = f"{folders[folder.parent]}{module(folder, name) if folder in packages else name}/"
        folders[folder] = neutral if len(neutral) <= MAX_FOLDER_LENGTH else f"{_digest(str(folder))}/"
    neutral_names = {}
    for path in paths:
        stem, suffix = _plain_stem(path)
        name = stem if path.name == "__init__.py" else module(path, stem)
        neutral_names[path] = f"{folders[path.parent]}{name}{suffix}"
    return neutral_names


def _plain_stem(path: PurePosixPath) -> tuple[str, str]:
    """And the suffix of its language: ast-grep knows no `.PY` or `.pyw`."""
    suffix = path.suffix.lower()
    suffix = ".py" if suffix in PYTHON_SUFFIXES else suffix
    return (_plain_name(path.stem) if path.suffix == suffix else _digest(path.name)), suffix


def _plain_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else _digest(name)


def _digest(text: str) -> str:
    return f"_{hashlib.sha256(os.fsencode(text)).hexdigest()[:24]}"
