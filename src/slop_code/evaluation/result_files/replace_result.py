"""Replacement of a stored result: at any moment the old or the new one is complete on the same disk.

Writers of one folder take turns, so that a result is never beside the evidence of another.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
from typing import TYPE_CHECKING

from slop_code._io import open_regular
from slop_code.evaluation.report import RESULT_FILE
from slop_code.evaluation.result_files.evidence_files import remove_evidence
from slop_code.evaluation.result_files.foreign_files import is_foreign_result, rename_or_refuse
from slop_code.execution.cache import is_still_at, remove_path
from slop_code.execution.sandbox import REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UNFINISHED = f".{RESULT_FILE}."
"""Beginning of the names of temporary files and folders next to a result."""

NEW = f"{UNFINISHED}new"
COPY = f"{UNFINISHED}copy"

LEFT_BEHIND = re.compile(rf"{re.escape(UNFINISHED)}(new|copy|[0-9a-f]{{16}})")
"""Names of this module and of `open_atomic`. Others that begin in the same way are those of editors, for example."""

OTHER_FOLDER = "give another folder"


@contextlib.contextmanager
def new_result(output: Path, foreign_step: str | None = OTHER_FOLDER) -> Iterator[Path]:
    """A folder for a new result and its evidence, which takes the place of the one in `output` after the block.

    All that needs space on the disk happens in the block, evaluation.json last. If it fails, the earlier result is as
    it was. After a kill, `finish_replacement` does the rest. `foreign_step`, as in `rename_or_refuse`, is for a file of
    another program that appeared during the evaluation.
    """
    output.mkdir(parents=True, exist_ok=True)
    with _only_writer(output):
        _finish(output)
        folder = output / NEW
        try:
            (folder / REPORTS_DIR).mkdir(parents=True)
            yield folder
            if is_foreign_result(output / RESULT_FILE):
                rename_or_refuse([output / RESULT_FILE], foreign_step)
            (output / RESULT_FILE).unlink(missing_ok=True)  # first: without it the rest does not count
        except BaseException:
            if not is_interrupted(output):
                remove_path(folder)
            raise
        _put_in_place(output)


@contextlib.contextmanager
def _only_writer(output: Path) -> Iterator[None]:
    """The folder itself is locked, which leaves no file; a file system without such locks has none.

    Another writer may have removed it, empty, before it was locked: then the folder of this name is another one.
    """
    while True:
        with contextlib.ExitStack() as held:
            folder = None
            with contextlib.suppress(OSError):
                folder = os.open(output, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                held.callback(os.close, folder)
                fcntl.flock(folder, fcntl.LOCK_EX)
            if folder is None or is_still_at(folder, output):
                yield
                return


def finish_replacement(output: Path) -> None:
    """Complete a replacement after which only the new result is left, and remove what other killed writers left."""
    with _only_writer(output):
        _finish(output)


def _finish(output: Path) -> None:
    if is_interrupted(output):
        _put_in_place(output)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for name in os.listdir(output):
            if name.startswith(UNFINISHED) and LEFT_BEHIND.fullmatch(name):
                remove_path(output / name)


def is_interrupted(output: Path) -> bool:
    """Whether a new result is complete and not in its place yet, and the old one is gone or never was."""
    new = output / NEW
    if not os.path.lexists(new) or new.is_symlink():
        return False
    return os.path.lexists(new / RESULT_FILE) and not os.path.lexists(output / RESULT_FILE)


def _put_in_place(output: Path) -> None:
    """Every step can be repeated. Files of others in the old .scbench stay."""
    new, old = output / NEW / REPORTS_DIR, output / REPORTS_DIR
    if os.path.lexists(new):
        if old.is_dir() and not old.is_symlink():
            remove_evidence(output)
            _move_missing(old, new)
        remove_path(old)
        os.rename(new, old)
    with contextlib.suppress(OSError):  # it is not empty, as a rule
        old.rmdir()
    os.rename(output / NEW / RESULT_FILE, output / RESULT_FILE)
    remove_path(output / NEW)


def _move_missing(source: Path, target: Path) -> None:
    for path in source.iterdir():
        other = target / path.name
        if not os.path.lexists(other):
            os.rename(path, other)
        elif all(each.is_dir() and not each.is_symlink() for each in (path, other)):
            _move_missing(path, other)


def failed_path(error: OSError, output: Path) -> str:
    """The path to name in a message; for temporary files of `new_result`, the result that they were for."""
    path = str(error.filename2 or error.filename or output / NEW)
    return str(output / RESULT_FILE) if path.startswith(str(output / NEW)) else path


def move_result(source: Path, target: Path) -> None:
    """From a folder of any file system into that of a new result."""
    if os.path.lexists(source / REPORTS_DIR):
        move_path(source / REPORTS_DIR, target / REPORTS_DIR)
    copy = target / COPY
    move_path(source / RESULT_FILE, copy)
    os.rename(copy, target / RESULT_FILE)


def move_path(source: Path, target: Path) -> None:
    """Rename a file or a folder. To another file system, its regular files are copied, and links are left out."""
    try:
        os.rename(source, target)
        return
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    if source.is_symlink():
        return
    if source.is_dir():
        target.mkdir(exist_ok=True)
        for path in source.iterdir():
            move_path(path, target / path.name)
    elif source.is_file():
        with open_regular(source) as stream, target.open("xb") as copy:
            shutil.copyfileobj(stream, copy)
        source.unlink()
