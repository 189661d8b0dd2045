"""Source files of a submission for scb-check: copies without anything that could steer it, and what was left out."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code.execution.submission import RESERVED, walk_tree
from slop_code.quality.neutral_paths import neutral_paths
from slop_code.quality.quality_record import CodePart
from slop_code.quality.source_text import neutral_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from slop_code.execution.submission import TreeEntry

MAX_FILES = 2000
MAX_FILE_SIZE = 256 << 10
MAX_TOTAL_SIZE = 16 << 20

SUFFIXES = frozenset(
    {".c++", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".js", ".mjs", ".cjs", ".py", ".py3", ".pyw", ".rs", ".ts",
     ".zig"}
)  # fmt: skip
"""Suffixes of the languages that scb-check reads."""

UNREAD_LANGUAGES = {
    ".c": "C", ".h": "C", ".cs": "C#", ".clj": "Clojure", ".dart": "Dart", ".ex": "Elixir", ".exs": "Elixir",
    ".erl": "Erlang", ".f90": "Fortran", ".fs": "F#", ".go": "Go", ".java": "Java", ".jl": "Julia", ".jsx": "JSX",
    ".kt": "Kotlin", ".lua": "Lua", ".ml": "OCaml", ".nim": "Nim", ".php": "PHP", ".pl": "Perl",
    ".pyx": "Cython", ".r": "R", ".rb": "Ruby", ".scala": "Scala", ".sh": "shell", ".swift": "Swift", ".tsx": "TSX",
    ".mts": "TypeScript", ".cts": "TypeScript", ".vue": "Vue",
}  # fmt: skip
UNSAFE_LANGUAGES = {".hs": "Haskell"}
"""scb-check reads them, but a hostile file makes the parser overwrite memory, and so perhaps figures of other files."""

_LANGUAGE_REASONS = {
    **{suffix: f"scb-check reads no {language}" for suffix, language in UNREAD_LANGUAGES.items()},
    **{suffix: f"scb-check's parser of {language} is not safe" for suffix, language in UNSAFE_LANGUAGES.items()},
}
NOT_WRITTEN_BY_AGENTS = frozenset(
    {".git", ".venv", ".env", "__pycache__", "node_modules", "site-packages", ".mypy_cache", ".pytest_cache",
     ".ruff_cache", ".tox"}
)  # fmt: skip
"""Folders of installed packages and of tools. scb-check itself skips `build`, `dist`, `env` and `venv` as well."""

IN_TOOL_FOLDER = "in a folder of installed packages or of tools"
TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs"})
TEST_FILE = re.compile(r"conftest\.pyw?|tests?\.pyw?|test_.*|.*_(?:test|tests|spec)\.[^.]+|.*[.-](?:test|spec)\.[^.]+")
_SHEBANG = re.compile(rb"#!.*python")


@dataclass(slots=True)
class Sources:
    copies: dict[CodePart, dict[str, str]] = field(default_factory=lambda: {part: {} for part in CodePart})
    """Of each part, the paths of the copies, to their paths in the submission."""

    left_out: dict[str, list[str]] = field(default_factory=dict)
    """The paths of files that are left out, by reason."""

    def leave_out(self, path: PurePosixPath, reason: str) -> None:
        self.left_out.setdefault(reason, []).append(str(path))


def copy_sources(submission: Path, target: Path) -> Sources:
    """Copy what scb-check reads to a folder for each part.

    Only regular files of a language that it reads: no configuration, ignore file or link of the submission.
    """
    sources = Sources()
    texts: dict[PurePosixPath, bytes] = {}
    size = 0
    for entry in walk_tree(submission, RESERVED):
        path = PurePosixPath(os.fsdecode(entry.path))
        if not _is_source(entry, path):
            continue
        reason = _reason_against(entry, path) or _limit_reached(len(texts), size + entry.size)
        text = None if reason else neutral_text(b"".join(entry.content()), path.suffix.lower())
        if text is None:
            sources.leave_out(path, reason or "an encoding in which ASCII characters have other meanings")
            continue
        texts[path] = text
        size += entry.size
    for part, copies in sources.copies.items():
        paths = [path for path in texts if code_part_of(path) == part]
        for path, name in neutral_paths(paths).items():
            copy = target / part / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(texts[path])
            copies[name] = str(path)
    return sources


def incomplete_parts(left_out: Mapping[str, list[str]]) -> dict[CodePart, int]:
    """Of each part, the left-out files of languages that are measured."""
    hidden = (paths for reason, paths in left_out.items() if reason not in _LANGUAGE_REASONS.values())
    return dict(Counter(code_part_of(PurePosixPath(path)) for paths in hidden for path in paths))


def code_part_of(path: PurePosixPath) -> CodePart:
    is_test = TEST_FILE.fullmatch(path.name) or any(part.lower() in TEST_FOLDERS for part in path.parts[:-1])
    return CodePart.TESTS if is_test else CodePart.IMPLEMENTATION


def _is_source(entry: TreeEntry, path: PurePosixPath) -> bool:
    if entry.kind == stat.S_IFDIR:
        return False
    suffix = path.suffix.lower()
    if suffix or entry.kind != stat.S_IFREG:
        return suffix in SUFFIXES or suffix in _LANGUAGE_REASONS
    return _SHEBANG.match(next(entry.content(), b"")) is not None


def _reason_against(entry: TreeEntry, path: PurePosixPath) -> str | None:
    if not NOT_WRITTEN_BY_AGENTS.isdisjoint(path.parts[:-1]):
        return IN_TOOL_FOLDER
    if reason := _LANGUAGE_REASONS.get(path.suffix.lower()):
        return reason
    if entry.kind != stat.S_IFREG:
        return "a link" if entry.kind == stat.S_IFLNK else "not a regular file"
    if not entry.readable:
        return "it cannot be read"
    return f"larger than {MAX_FILE_SIZE >> 10} KiB" if entry.size > MAX_FILE_SIZE else None


def _limit_reached(files: int, size: int) -> str | None:
    if files >= MAX_FILES:
        return f"more than {MAX_FILES} source files"
    return f"more than {MAX_TOTAL_SIZE >> 20} MiB of source files" if size > MAX_TOTAL_SIZE else None
