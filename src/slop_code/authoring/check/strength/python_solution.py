"""Python files of a reference solution, and the mutants of their new lines."""

from __future__ import annotations

import difflib
import os
import shutil
from typing import TYPE_CHECKING

from slop_code._io import TooLargeError, read_bounded
from slop_code._safe_text import escape_control
from slop_code.authoring.check.strength.mutant import Mutant
from slop_code.authoring.check.strength.python_edits import compiles, python_edits
from slop_code.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MAX_FILE_BYTES = 256 * 1024
MAX_FILES = 1000
MAX_REASON_LENGTH = 500
NOT_OURS = frozenset({"__pycache__", "build", "dist", "node_modules", "target", "vendor", "venv"})


def mutants_of(solution: Path, before: Path | None = None) -> list[Mutant]:
    """Only lines that the solution `before` does not have are changed: mutants of the others were tried there."""
    old = python_files(before) if before else {}
    return [mutant for name, text in python_files(solution).items() for mutant in _of_file(name, text, old)]


def copy_solution(solution: Path, folder: Path) -> None:
    try:
        shutil.copytree(solution, folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:  # copytree joins several errors into a list
        reason = escape_control(str(error), MAX_REASON_LENGTH)
        raise InfrastructureError(f"{solution}: cannot be copied: {reason}") from error


def overwrite(path: Path, text: str) -> None:
    """Keeps the mode, and overwrites read-only files as well."""
    path.chmod(path.stat().st_mode | 0o200)
    path.write_bytes(text.encode())


def python_files(folder: Path) -> dict[str, str]:
    """Texts by file name. Links, hidden files and files too large to be written by hand are left out."""
    texts = {name: _read(folder / name) for name in list(_names(folder))[:MAX_FILES]}
    return {name: text for name, text in texts.items() if text and is_python(name, text)}


def unparsed_files(folder: Path) -> tuple[str, ...]:
    """Files that slop-code's own Python cannot parse, as they need a newer one; they have no mutants."""
    return tuple(name for name, text in python_files(folder).items() if not compiles(text))


def is_python(name: str, text: str) -> bool:
    first = text.partition("\n")[0]
    return name.endswith(".py") or (first.startswith("#!") and "python" in first)


def _names(folder: Path) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in NOT_OURS and not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield os.path.relpath(os.path.join(root, name), folder)


def _read(path: Path) -> str:
    try:
        text = read_bounded(path, MAX_FILE_BYTES).decode("utf-8")
    except (OSError, TooLargeError, UnicodeDecodeError):
        return ""
    return "" if "\0" in text else text


def _of_file(name: str, text: str, old: Mapping[str, str]) -> Iterator[Mutant]:
    fresh = new_lines(old.get(name, ""), text)
    for edit in python_edits(text):
        mutant = Mutant(name, text, edit)
        if not fresh.isdisjoint(mutant.lines):
            yield mutant


def new_lines(old: str, new: str) -> frozenset[int]:
    """Numbers of the lines that were added or changed."""
    before, after = old.split("\n"), new.split("\n")
    if not old:
        return frozenset(range(1, len(after) + 1))
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return frozenset(line + 1 for tag, _, _, first, end in blocks if tag != "equal" for line in range(first, end))
