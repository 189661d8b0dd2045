"""Mounts of containers: those of the environment file, and the targets that are reserved."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SYSTEM = {
    "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "slop", "sys", "tmp", "usr",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mount:
    """A path of the host, or a volume where the source has no slash."""

    source: str
    target: str
    readonly: bool = True
    filled: bool = False
    """A new volume begins with the image's content of that folder."""

    @property
    def is_folder(self) -> bool:
        return "/" in self.source

    @property
    def words(self) -> list[str]:
        if not self.is_folder:
            options = [*(["ro"] if self.readonly else []), *([] if self.filled else ["nocopy"])]
            return ["--volume", ":".join([self.source, self.target, ",".join(options)])]
        fields = ["type=bind", f"source={self.source}", f"target={self.target}"]
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow([*fields, *(["readonly"] if self.readonly else [])])
        return ["--mount", line.getvalue()]


def extra_mounts(value: Sequence[Any] | Mapping[Any, Any]) -> list[Mount]:
    """`source:target[:mode]`, `{source: target[:mode]}`, `{source: {bind, mode}}`; read-only unless the mode is rw.

    A ValueError says what was expected.
    """
    mounts = []
    for entry in [value] if isinstance(value, dict) else value:
        pairs = entry.items() if isinstance(entry, dict) else [str(entry).partition(":")[::2]]
        for source, target in pairs:
            if isinstance(target, dict):
                target = f"{target.get('bind')}:{target.get('mode', 'ro')}"
            mounts.append(_mount(str(source), *str(target).split(":")))
    return mounts


def _mount(source: str, target: str = "", mode: str = "ro", *rest: str) -> Mount:
    source = os.path.expanduser(source)
    if not source or not target.startswith("/") or rest or mode not in ("ro", "rw"):
        raise ValueError("mounts such as source:/target, or source:/target:rw to write to it")
    if "/" in source and not source.startswith("/"):
        raise ValueError(f"absolute sources, which {source} is not")
    if is_reserved(target) or os.path.normpath(target) == "/tmp":
        raise ValueError(f"targets that are free, which {target} is not")
    return Mount(source, target, mode == "ro")


def is_free(path: str) -> bool:
    """Whether the workspace can be there: an absolute plain path, neither the system's nor reserved."""
    parts = path.split("/")
    plain = all(part not in ("", ".", "..") for part in parts[1:]) and path.isprintable() and not set(path) & set(":,")
    return path.startswith("/") and plain and parts[1] not in SYSTEM


def is_reserved(path: str) -> bool:
    """Nothing can be mounted over slop-code's own folder, the kernel's, or the root."""
    return os.path.normpath(path).split("/")[1] in ("", "dev", "proc", "slop", "sys")
