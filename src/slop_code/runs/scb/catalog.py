"""Release of the problems that a run names in problem_catalog.json, compared with that of the problems in use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slop_code._io import read_or_none
from slop_code.runs.scb.agent_facts import MAX_FILE_BYTES, read_json, text_or_none

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

CATALOG_FILE = "problem_catalog.json"
MANIFEST_FILE = "manifest.json"
MAX_PACKED_REFS = 64 << 20
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = re.compile(r"refs(?:/(?!\.)[A-Za-z0-9._+-]+)+")


@dataclass(frozen=True, slots=True)
class Release:
    """A release of the problems. What is not known is None."""

    version: str | None = None
    commit: str | None = None

    def __str__(self) -> str:
        commit = self.commit[:12] if self.commit else None
        return " at ".join(part for part in (self.version, commit) if part)

    def differs(self, other: Release) -> bool:
        """By the commit where both have one, else by the version; what is not known does not differ."""
        if self.commit and other.commit:
            return self.commit != other.commit
        return bool(self.version and other.version and self.version != other.version)


def catalog_warnings(run: Path, problems: Iterable[Path]) -> list[str]:
    """A warning for each folder of problems that is of another release than the run names."""
    named = _release_in(run / CATALOG_FILE)
    warnings = []
    for folder in sorted(set(problems)):
        release = release_of(folder)
        if named.differs(release):
            warnings.append(f"{run / CATALOG_FILE}: the run used the problems {named}, and {folder} has {release}")
    return warnings


def release_of(problems: Path) -> Release:
    """From manifest.json in a folder of problems, and from its git repository, which is read without git."""
    manifest = _release_in(problems / MANIFEST_FILE)
    return Release(manifest.version, manifest.commit or _git_commit(problems / ".git"))


def _release_in(path: Path) -> Release:
    document = read_json(path)
    return Release(text_or_none(document.get("version")), _as_commit(document.get("commit")))


def _as_commit(value: Any) -> str | None:
    return value.lower() if isinstance(value, str) and _COMMIT.fullmatch(value.lower()) else None


def _git_commit(git: Path) -> str | None:
    """The commit of HEAD. In a worktree, `.git` is a file with the path of a folder, and branches are in another."""
    if (pointer := _first_line(git)).startswith("gitdir: "):
        git = git.parent / pointer.removeprefix("gitdir: ")
    head = _first_line(git / "HEAD")
    name = head.removeprefix("ref: ")
    if name == head:
        return _as_commit(head)
    if not _REF.fullmatch(name):
        return None
    common = git / (_first_line(git / "commondir") or ".")
    return _as_commit(_first_line(git / name)) or _as_commit(_first_line(common / name)) or _packed(common, name)


def _packed(git: Path, name: str) -> str | None:
    for line in _text(git / "packed-refs", MAX_PACKED_REFS).splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return _as_commit(commit)
    return None


def _first_line(path: Path) -> str:
    return _text(path, MAX_FILE_BYTES).partition("\n")[0].strip()


def _text(path: Path, limit: int) -> str:
    """Empty where there is no such file."""
    return (read_or_none(path, limit) or b"").decode("utf-8", "replace")
