"""Mechanical changes to a problem's files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fix:
    """One change of one file, relative to the problem's folder: `old` becomes `new`, or all of it goes."""

    file: str
    line: int | None = None
    """Where `old` stands; None: the file or folder is removed."""

    old: str = ""
    new: str = ""
