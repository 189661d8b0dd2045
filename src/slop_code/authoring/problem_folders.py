"""Which problems a person means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import UsageError
from slop_code.evaluation.problem_lookup import problems_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIG = "config.yaml"


def problem_folders(given: Sequence[str], problems_dir: Path | None) -> list[Path]:
    """Folders of problems, folders of such folders, names; none: the current folder, else all of that for problems."""
    if given:
        return list(dict.fromkeys(folder for one in given for folder in _meant(one, problems_dir)))
    if os.path.exists(CONFIG):
        return [Path()]
    folder = problems_folder(problems_dir)
    found = problems_in(folder)
    if not found:
        raise UsageError(f"{folder}: no problem there, nor a {CONFIG} here; give the path of a problem's folder")
    return found


def problems_in(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))


def _meant(given: str, problems_dir: Path | None) -> list[Path]:
    path = Path(given)
    if os.path.exists(path / CONFIG):
        return [path]
    named = problems_folder(problems_dir) / given
    if "/" not in given and os.path.exists(named / CONFIG):
        return [named]
    found = problems_in(path)
    if not found:
        fact = f"neither a {CONFIG} nor a problem's folder in it" if os.path.isdir(path) else "no such folder"
        raise UsageError(f"{given}: {fact}; give a problem's folder, or its name and --problems-dir")
    return found
