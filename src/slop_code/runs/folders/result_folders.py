"""Folders of results: the results, snapshots and runs below a folder, and paths that commands may write to."""

from __future__ import annotations

import os
import shlex
import tempfile
from typing import TYPE_CHECKING

from slop_code._io import unreadable_text
from slop_code.errors import UsageError
from slop_code.evaluation.problem.problem_lookup import ENVIRONMENT
from slop_code.execution.sandbox import REPORTS_DIR
from slop_code.runs.folders.folder_kind import folder_advice
from slop_code.runs.follow.stop_file import STOP_FILE
from slop_code.runs.run_layout import (
    LINES_FILE,
    RESULT_FILE,
    SNAPSHOT,
    SUMMARY_FILE,
    check_folder,
    names_in,
    names_or_none,
    natural_order,
    stored_snapshot,
)
from slop_code.runs.scb.agent_facts import CONFIG_FILE, INFERENCE_FILE, RESULT_SUMMARY_FILE
from slop_code.runs.scb.catalog import CATALOG_FILE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LEVELS = 2
"""Depth of a result below the run folder: problem and checkpoint."""

MAX_LISTED = 20

QUALITY_FILE = "quality.json"
"""Written by `quality`, a layer above."""

RUN_FILES = frozenset({
    RESULT_FILE, LINES_FILE, SUMMARY_FILE, STOP_FILE, QUALITY_FILE,
    CONFIG_FILE, ENVIRONMENT, CATALOG_FILE, RESULT_SUMMARY_FILE, INFERENCE_FILE,
})  # fmt: skip
"""File names of a run folder, whoever writes them."""


def folder_of(given: Path) -> Path:
    """The folder of a result that is given as its file."""
    return given.parent if given.name == RESULT_FILE and not given.is_dir() else given


def result_at(given: Path) -> Path:
    """The evaluation.json that is given as itself or as its folder."""
    if os.path.lexists(given) and not given.is_dir():
        return given
    folder = folder_of(given)
    if os.path.lexists(folder / RESULT_FILE):
        return folder / RESULT_FILE
    paths = result_files(folder, LEVELS + 1) if folder.is_dir() else []
    if not paths:
        advice = folder_advice(folder) if folder.is_dir() else ""
        step = advice or "; give a result that was evaluated, such as RUN_DIR/problem/checkpoint"
        raise UsageError(f"{given}: no {RESULT_FILE} there{step}")
    several = "".join(f"\n  {path.parent}" for path in paths[:MAX_LISTED])
    more = f"\n  and {len(paths) - MAX_LISTED} more" if len(paths) > MAX_LISTED else ""
    whole = f"`slop-code report {shlex.quote(str(given))}` shows all of them"
    raise UsageError(f"{given}: a folder around results; {whole}; give one of them:{several}{more}")


def check_output(path: Path, option: str = "-o") -> None:
    """A report or an export must not replace a result or another file of a run, nor lie in a snapshot."""
    step = f"give another path with {option}"
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', error)}; {step}") from error
    if path.is_dir():
        raise UsageError(f"{path}: a folder; give the name of a file with {option}")
    if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
        raise UsageError(f"{path}: not a regular file, and would be replaced; give another name with {option}")
    if SNAPSHOT in path.absolute().parent.resolve().parts:
        raise UsageError(f"{path}: lies in a snapshot, where nothing is ever written; {step}")
    if path.name in RUN_FILES or REPORTS_DIR in path.absolute().parts:
        raise UsageError(f"{path}: a file name of runs or of the results themselves; give another name with {option}")
    _check_can_be_made(path, step)


def _check_can_be_made(path: Path, step: str) -> None:
    """Makes and removes a folder there, as permissions do not tell what a file system such as /proc takes."""
    around = next((folder for folder in path.absolute().parents if os.path.lexists(folder)), path)
    if not os.path.isdir(around):
        raise UsageError(f"{path}: {around} is not a folder; {step}")
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".slop-code-", dir=around))
    except OSError as error:
        raise UsageError(f"{path}: nothing can be written in {around}: {error.strerror}; {step}") from error


def result_files(folder: Path, levels: int = LEVELS) -> list[Path]:
    """Files in a snapshot belong to the submission, whatever their names."""
    own = [folder / RESULT_FILE] if os.path.lexists(folder / RESULT_FILE) else []
    inner = _folders_in(folder) if levels else []
    return own + [path for child in inner for path in result_files(child, levels - 1)]


def _folders_in(folder: Path) -> list[Path]:
    """Without the snapshot, of which nothing is a result."""
    names = [name for name in names_or_none(folder) if name not in (SNAPSHOT, stored_snapshot(folder).name)]
    return [folder / name for name in sorted(names, key=natural_order) if os.path.isdir(folder / name)]


def unreadable_folders(folder: Path, levels: int = LEVELS) -> list[str]:
    """The reason for each folder that may hold results and cannot be listed."""
    try:
        inner = [folder / name for name in names_in(folder) if name != SNAPSHOT]
        folders = [child for child in inner if levels and child.is_dir()]
        return [reason for child in folders for reason in unreadable_folders(child, levels - 1)]
    except OSError as error:
        return [unreadable_text(error, folder)]


def checkpoint_folders(
    folder: Path, levels: int = LEVELS, *, snapshot_of: Callable[[Path], Path] = stored_snapshot
) -> list[Path]:
    """The folder itself, and folders in it, that have a snapshot."""
    own = [folder] if os.path.isdir(snapshot_of(folder)) else []
    inner = _folders_in(folder) if levels else []
    return own + [path for child in inner for path in checkpoint_folders(child, levels - 1, snapshot_of=snapshot_of)]


def runs_below(folder: Path) -> list[Path]:
    """The run itself, or the runs that a folder holds."""
    check_folder(folder)
    if result_files(folder):
        return [folder]
    inner = [folder / name for name in sorted(names_or_none(folder), key=natural_order)]
    inner = [path for path in inner if path.is_dir()]
    if os.path.lexists(folder / LINES_FILE) and not any(result_files(path) for path in inner):
        return [folder]  # otherwise it has the common summary of the runs in it
    runs = [path for path in inner if _holds_results(path)]
    if not runs:
        step = folder_advice(folder) or "; give the folder of an evaluated run"
        raise UsageError(f"{folder}: no {RESULT_FILE} there, and no run that has one{step}")
    return runs


def _holds_results(folder: Path) -> bool:
    return os.path.lexists(folder / LINES_FILE) or bool(result_files(folder))
