"""Mechanical changes to a problem's files."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code._config import load_yaml_model
from slop_code._io import TooLargeError, read_bounded, write_atomic
from slop_code.authoring.folders import CONFIG
from slop_code.authoring.yaml_text import with_entry, with_key_renamed
from slop_code.errors import ConfigError
from slop_code.evaluation.config import ProblemConfig

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slop_code.authoring.finding import Finding

LARGEST = 16 << 20


@dataclass(frozen=True, slots=True)
class Removed:
    """All of it goes, a folder with what is in it."""

    file: str

    def __str__(self) -> str:
        return f"remove {self.file}"


@dataclass(frozen=True, slots=True)
class Replaced:
    """`old`, which stands at that line and column (from 1, and from 0 in bytes, as `ast` counts), becomes `new`."""

    file: str
    line: int
    column: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"write {self.new} instead of {self.old}"

    def changed(self, data: bytes) -> bytes | None:
        lines = data.split(b"\n")
        old, new = self.old.encode(), self.new.encode()
        if self.line > len(lines):
            return None
        line = lines[self.line - 1]
        if line[self.column : self.column + len(old)] != old:
            return None
        lines[self.line - 1] = line[: self.column] + new + line[self.column + len(old) :]
        return b"\n".join(lines)


@dataclass(frozen=True, slots=True)
class KeyRenamed:
    """The last part of a key in a YAML file."""

    file: str
    key: str
    new: str

    def __str__(self) -> str:
        return f"rename {self.key} to {self.new}"

    def changed(self, data: bytes) -> bytes | None:
        return _encoded(with_key_renamed(data.decode("utf-8"), self.key, self.new))


@dataclass(frozen=True, slots=True)
class EntryAdded:
    """One more entry of a list at the top of a YAML file."""

    file: str
    key: str
    entry: str
    before: str
    """The key above which the list is put where there is none."""

    def __str__(self) -> str:
        return f"add {self.entry} to {self.key}"

    def changed(self, data: bytes) -> bytes | None:
        return _encoded(with_entry(data.decode("utf-8"), self.key, self.entry, before=self.before))


Edit = Replaced | KeyRenamed | EntryAdded
Fix = Removed | Edit


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8")


def changed_by(fix: Edit, data: bytes, folder: Path) -> bytes | None:
    """The file's new content; None where the change cannot be made, or config.yaml would have one more mistake."""
    changed = fix.changed(data)
    if changed is None or fix.file != CONFIG:
        return changed
    return changed if _mistakes(changed, folder) <= _mistakes(data, folder) else None


def promised(finding: Finding, config: bytes, folder: Path) -> Finding:
    """Without a fix of config.yaml that would not be made."""
    fix = finding.fix
    if isinstance(fix, Edit) and fix.file == CONFIG and changed_by(fix, config, folder) is None:
        return replace(finding, fix=None)
    return finding


def _mistakes(config: bytes, folder: Path) -> int:
    try:
        load_yaml_model(folder / CONFIG, ProblemConfig, config.decode("utf-8-sig"))
    except ConfigError as error:
        return len(str(error).splitlines())
    return 0


def apply(folder: Path, findings: Sequence[Finding]) -> list[Finding]:
    """Those that were mended. What has changed since it was looked at, or is a link, stays as it is."""
    fixes = list(dict.fromkeys(finding.fix for finding in findings if finding.fix is not None))
    done: set[Fix] = set()
    for file in dict.fromkeys(fix.file for fix in fixes):
        own = [fix for fix in fixes if fix.file == file]
        try:
            done |= _applied(folder, file, own)
        except (OSError, TooLargeError, UnicodeError):
            continue
    return [finding for finding in findings if finding.fix in done]


def _applied(folder: Path, file: str, fixes: Sequence[Fix]) -> set[Fix]:
    path = _inside(folder, file)
    if path is None:
        return set()
    if gone := [fix for fix in fixes if isinstance(fix, Removed)]:
        _remove(path)
        return set(gone)
    return _edit(path, [fix for fix in fixes if not isinstance(fix, Removed)], folder)


def _edit(path: Path, fixes: Sequence[Edit], folder: Path) -> set[Fix]:
    done: set[Fix] = set()
    found = read_bounded(path, LARGEST)
    data = found
    for fix in sorted(fixes, key=_from_the_end):
        changed = changed_by(fix, data, folder)
        if changed is not None:
            data = changed
            done.add(fix)
    if done:
        mode = stat.S_IMODE(path.lstat().st_mode)
        if read_bounded(path, LARGEST) != found:
            return set()
        write_atomic(path, data)
        os.chmod(path, mode)
    return done


def _from_the_end(fix: Edit) -> tuple[int, int]:
    """So that no change moves the place of the next one."""
    return (-fix.line, -fix.column) if isinstance(fix, Replaced) else (0, 0)


def _remove(path: Path) -> None:
    if stat.S_ISDIR(path.lstat().st_mode):
        shutil.rmtree(path)
    else:
        path.unlink()


def _inside(folder: Path, file: str) -> Path | None:
    """Where a file of the problem lies; None if that is elsewhere, behind a link, or nowhere."""
    parts = PurePosixPath(file).parts
    if not parts or PurePosixPath(file).is_absolute() or ".." in parts:
        return None
    path = folder
    for part in parts:
        if path != folder and path.is_symlink():
            return None
        path = path / part
    return path if os.path.lexists(path) else None
