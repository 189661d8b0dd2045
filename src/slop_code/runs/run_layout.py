"""Layout of a run folder: file names, and the names of runs."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._safe_text import decoded_name
from slop_code.errors import UsageError
from slop_code.evaluation.report import RESULT_FILE as RESULT_FILE
from slop_code.evaluation.result_files.origin import stored_origin
from slop_code.runs.layout_names import LAYOUT as LAYOUT
from slop_code.runs.layout_names import LINES_FILE as LINES_FILE
from slop_code.runs.layout_names import SNAPSHOT as SNAPSHOT
from slop_code.runs.layout_names import SUMMARY_FILE as SUMMARY_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence


def named_runs(folders: Sequence[Path]) -> list[tuple[str, Path]]:
    """Each run with its name: the last part of its path, or the path where two runs share that."""
    for folder in folders:
        check_folder(folder)
    real = [folder.resolve() for folder in folders]
    if duplicates := [str(path) for path, count in Counter(real).items() if count > 1]:
        raise UsageError(f"{duplicates[0]}: given twice; give each run once")
    shared = {name for name, count in Counter(path.name for path in real).items() if count > 1}
    names = [str(folder) if path.name in shared else path.name for path, folder in zip(real, folders, strict=True)]
    if len(set(names)) < len(names):  # a link has the name of another run's folder
        names = [str(path) for path in real]
    return [(decoded_name(name), folder) for name, folder in zip(names, folders, strict=True)]


def check_folder(folder: Path) -> None:
    if not folder.is_dir():
        fact = "not a folder" if os.path.lexists(folder) else "there is no such folder"
        raise UsageError(f"{folder}: {fact}; give the folder that holds {LAYOUT}")
    if SNAPSHOT in folder.resolve().parts:
        raise UsageError(f"{folder}: lies in a snapshot, where nothing is ever written; give the folder that holds it")


def stored_snapshot(folder: Path) -> Path:
    """The snapshot of the result in `folder`, whether it exists or not.

    It is where the last evaluation had it: beside the result, or in the run of a mirrored tree. The name is that of
    --snapshot-dir; in a run that was moved, it is beside the result. The origin of a run from somewhere else may name
    any folder of this machine, so only one of the same problem and checkpoint counts.
    """
    remembered = Path(stored_origin(folder).snapshot or SNAPSHOT)
    if ".." in remembered.parts:
        return folder / SNAPSHOT
    same = remembered.is_absolute() and remembered.parts[-3:-1] == folder.absolute().parts[-2:]
    paths = [remembered] * same + [folder / remembered.name]
    return next((path for path in paths if path.is_dir()), folder / SNAPSHOT)


def relative_path(path: Path, folder: Path) -> str:
    """As os.path.relpath, and much quicker for a path that begins with that of the folder."""
    text, inside = str(path), f"{folder}/"
    if text.startswith(inside) and ".." not in path.parts:
        return text[len(inside) :]
    return os.path.relpath(path, folder)


def names_in(folder: Path) -> list[str]:
    """Names of files and folders alike, without hidden ones."""
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


def names_or_none(folder: Path) -> list[str]:
    try:
        return names_in(folder)
    except OSError:
        return []


def natural_order(name: str) -> list[tuple[int, str]]:
    """Sort key that puts checkpoint_10 after checkpoint_9."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [(int(part), "") if number % 2 else (0, part) for number, part in enumerate(parts)]


def real_path(path: Path) -> Path:
    """Before Python 3.13, Path.resolve raises RuntimeError for a link that leads to itself."""
    return Path(os.path.realpath(path))
