"""The files of a reference solution that are worth a fault, and the lines of them that are new."""

from __future__ import annotations

import difflib
import os
import re
import shutil
from typing import TYPE_CHECKING

from slop_code._io import TooLargeError, read_bounded
from slop_code.authoring.mutants.edit import Mutant
from slop_code.authoring.mutants.python import compiles, python_edits
from slop_code.authoring.mutants.text import text_edits
from slop_code.errors import InfrastructureError
from slop_code.evaluation.reports.raw_test import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

LARGEST_FILE = 256 * 1024
MOST_FILES = 1000
REASON_LIMIT = 500
NOT_CODE = re.compile(
    r"\.(cfg|conf|css|csv|html|ini|json|jsonl|lock|log|md|mod|rst|sum|svg|toml|tsv|txt|xml|yaml|yml)", re.IGNORECASE
)
"""Data, settings and prose."""

NOT_OURS = frozenset({"__pycache__", "build", "dist", "node_modules", "target", "vendor", "venv"})


def mutants_of(solution: Path, entry: str, before: Path | None = None) -> list[Mutant]:
    """Of the lines that the solution `before` does not have: there, the others were tried already."""
    old = code_files(before, entry) if before else {}
    return [mutant for name, text in code_files(solution, entry).items() for mutant in _of_file(name, text, old)]


def copy_solution(solution: Path, folder: Path) -> None:
    try:
        shutil.copytree(solution, folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:  # of several at once, the message is a list
        raise InfrastructureError(f"{solution}: cannot be copied: {visible(str(error), REASON_LIMIT)}") from error


def overwrite(path: Path, text: str) -> None:
    """Its mode stays, and does not stand in the way."""
    path.chmod(path.stat().st_mode | 0o200)
    path.write_bytes(text.encode())


def is_sound(mutant: Mutant) -> bool:
    """Whether it is a program at all, as far as can be told without running it."""
    return not mutant.file.endswith(".py") or compiles(mutant.mutated)


def code_files(folder: Path, entry: str) -> dict[str, str]:
    """By name, in order. Links, hidden files and data are left out; so is what is too large to be by hand."""
    found = {}
    for name in list(_names(folder))[:MOST_FILES]:
        text = _read(folder / name)
        suffix = os.path.splitext(name)[1]
        if text and not NOT_CODE.fullmatch(suffix) and (suffix or name == entry or text.startswith("#!")):
            found[name] = text
    return found


def _names(folder: Path) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in NOT_OURS and not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield os.path.relpath(os.path.join(root, name), folder)


def _read(path: Path) -> str:
    try:
        text = read_bounded(path, LARGEST_FILE).decode("utf-8")
    except (OSError, TooLargeError, UnicodeDecodeError):
        return ""
    return "" if "\0" in text else text


def _of_file(name: str, text: str, old: Mapping[str, str]) -> Iterator[Mutant]:
    edits = python_edits(text) if name.endswith(".py") else text_edits(name, text)
    fresh = new_lines(old.get(name, ""), text)
    for edit in edits:
        mutant = Mutant(name, text, edit)
        if not fresh.isdisjoint(mutant.lines):
            yield mutant


def new_lines(old: str, new: str) -> frozenset[int]:
    """The numbers of the lines that were put in or changed."""
    before, after = old.split("\n"), new.split("\n")
    if not old:
        return frozenset(range(1, len(after) + 1))
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return frozenset(line + 1 for tag, _, _, first, end in blocks if tag != "equal" for line in range(first, end))
