"""Source files of a submission for scb-check: copies without anything that could steer it, and what was left out."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code.execution.submission import RESERVED, walk_tree
from slop_code.quality.quality_record import CodePart

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.execution.submission import TreeEntry

MAX_FILES = 2000
MAX_FILE_SIZE = 256 << 10
MAX_TOTAL_SIZE = 16 << 20
MAX_PATH_LENGTH = 200
"""Bytes; scb-check passes all paths to ast-grep in one command."""

SUFFIXES = frozenset(
    {".c++", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".hs", ".js", ".mjs", ".cjs", ".py", ".pyw", ".rs", ".ts",
     ".zig"}
)  # fmt: skip
"""Of the languages that scb-check reads."""

UNREAD_LANGUAGES = {
    ".c": "C", ".h": "C", ".cs": "C#", ".clj": "Clojure", ".dart": "Dart", ".ex": "Elixir", ".exs": "Elixir",
    ".erl": "Erlang", ".f90": "Fortran", ".fs": "F#", ".go": "Go", ".java": "Java", ".jl": "Julia", ".jsx": "JSX",
    ".kt": "Kotlin", ".lua": "Lua", ".ml": "OCaml", ".nim": "Nim", ".php": "PHP", ".pl": "Perl", ".py3": "Python",
    ".pyx": "Cython", ".r": "R", ".rb": "Ruby", ".scala": "Scala", ".sh": "shell", ".swift": "Swift", ".tsx": "TSX",
    ".mts": "TypeScript", ".cts": "TypeScript", ".vue": "Vue",
}  # fmt: skip
NOT_WRITTEN_BY_AGENTS = frozenset(
    {".git", ".venv", ".env", "__pycache__", "node_modules", "site-packages", ".mypy_cache", ".pytest_cache",
     ".ruff_cache", ".tox"}
)  # fmt: skip
"""Folders of installed packages and of tools. scb-check itself skips `build`, `dist`, `env` and `venv` as well."""

IN_TOOL_FOLDER = "in a folder of installed packages or of tools"
"""The reason for files that are no part of the submission's own code."""

TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs"})
TEST_FILE = re.compile(
    r"conftest\.pyw?|tests?\.pyw?|test_.*|.*_(?:test|tests|spec)\.[^.]+|.*[.-](?:test|spec)\.[^.]+|.+(?:Test|Tests|Spec)\.hs"
)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
_DIRECTIVE, _NO_DIRECTIVE = b"ast-grep-ignore", b"ast-grep-ignorE"
"""ast-grep obeys this word in a comment, and has no option against it. The other has the same length and syntax."""


@dataclass(slots=True)
class Sources:
    copies: dict[CodePart, dict[str, str]] = field(default_factory=lambda: {part: {} for part in CodePart})
    """Of each part, the paths of the copies, to their paths in the submission."""

    left_out: dict[str, list[str]] = field(default_factory=dict)
    """The paths of files that are left out, by reason."""

    size: int = 0

    @property
    def files(self) -> int:
        return sum(map(len, self.copies.values()))


def copy_sources(submission: Path, target: Path) -> Sources:
    """Copy what scb-check reads to a folder for each part.

    Only regular files with the suffix of a language: no configuration, ignore file or link of the submission.
    """
    sources = Sources()
    for entry in walk_tree(submission, RESERVED):
        path = PurePosixPath(os.fsdecode(entry.path))
        if entry.kind == stat.S_IFDIR or path.suffix.lower() not in (*SUFFIXES, *UNREAD_LANGUAGES):
            continue
        reason = _reason_against(entry, path, sources)
        if reason is not None:
            sources.left_out.setdefault(reason, []).append(str(path))
            continue
        copies = sources.copies[code_part_of(path)]
        name = neutral_path(path, copies)
        copy = target / code_part_of(path) / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(b"".join(entry.content()).replace(_DIRECTIVE, _NO_DIRECTIVE))
        copies[name] = str(path)
        sources.size += entry.size
    return sources


def code_part_of(path: PurePosixPath) -> CodePart:
    is_test = TEST_FILE.fullmatch(path.name) or any(part.lower() in TEST_FOLDERS for part in path.parts[:-1])
    return CodePart.TESTS if is_test else CodePart.IMPLEMENTATION


def neutral_path(path: PurePosixPath, taken: dict[str, str]) -> str:
    """The same path, as it decides about modules, except for names that ast-grep might not read or print."""
    suffix = path.suffix.lower()
    stem = path.name[: -len(suffix)]
    ending = "_pyw.py" if suffix == ".pyw" else suffix  # ast-grep knows no .pyw
    parts = [*map(_neutral_name, path.parts[:-1]), _neutral_name(stem) + ending]
    neutral = "/".join(parts)
    if len(neutral) > MAX_PATH_LENGTH or neutral in taken:
        return f"_{_short_digest(str(path))}{ending}"
    return neutral


def _neutral_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f"_{_short_digest(name)}"


def _short_digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:16]


def _reason_against(entry: TreeEntry, path: PurePosixPath, sources: Sources) -> str | None:
    if not NOT_WRITTEN_BY_AGENTS.isdisjoint(path.parts[:-1]):
        return IN_TOOL_FOLDER
    if language := UNREAD_LANGUAGES.get(path.suffix.lower()):
        return f"scb-check reads no {language}"
    if entry.kind != stat.S_IFREG:
        return "a link" if entry.kind == stat.S_IFLNK else "not a regular file"
    if not entry.readable:
        return "it cannot be read"
    if entry.size > MAX_FILE_SIZE:
        return f"larger than {MAX_FILE_SIZE >> 10} KiB"
    if sources.files >= MAX_FILES:
        return f"more than {MAX_FILES} source files"
    return (
        f"more than {MAX_TOTAL_SIZE >> 20} MiB of source files" if sources.size + entry.size > MAX_TOTAL_SIZE else None
    )
