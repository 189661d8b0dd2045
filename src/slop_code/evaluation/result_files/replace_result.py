"""Replacement of a stored result, which stays until the new one is complete on the same disk."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING

from slop_code.evaluation.report import RESULT_FILE
from slop_code.execution.cache import remove_path
from slop_code.execution.sandbox import REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

UNFINISHED = f".{RESULT_FILE}."
"""Beginning of the names of temporary files and folders next to a result."""

NEW = f"{UNFINISHED}new"


@contextlib.contextmanager
def new_result(output: Path, clear: Callable[[Path], None]) -> Iterator[Path]:
    """A folder for a new result and its evidence, which takes the place of the one in `output` after the block.

    All that needs space on the disk happens in the block. If it fails, the earlier result is as it was.
    `clear` removes earlier evidence. One call at a time for a folder.
    """
    folder = output / NEW
    remove_unfinished(output)
    try:
        folder.mkdir(parents=True)
        yield folder
        (output / RESULT_FILE).unlink(missing_ok=True)  # first: without it the rest does not count
        clear(output)
        _merge(folder / REPORTS_DIR, output / REPORTS_DIR)
        os.rename(folder / RESULT_FILE, output / RESULT_FILE)
    finally:
        remove_path(folder)


def move_result(source: Path, target: Path) -> None:
    """From a folder of any file system into that of a new result."""
    for name in (REPORTS_DIR, RESULT_FILE):
        if os.path.lexists(source / name):
            shutil.move(source / name, target / name)


def remove_unfinished(output: Path) -> None:
    """What writers left that were killed."""
    for path in output.glob(f"{UNFINISHED}*"):
        remove_path(path)


def _merge(source: Path, target: Path) -> None:
    """Rename everything in the folder; files of others in `target` stay."""
    if not target.exists():
        with contextlib.suppress(FileNotFoundError):
            os.rename(source, target)
        return
    for path in source.iterdir() if source.is_dir() else ():
        if path.is_dir() and (target / path.name).is_dir():
            _merge(path, target / path.name)
        else:
            os.rename(path, target / path.name)
