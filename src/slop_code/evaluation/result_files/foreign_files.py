"""Files of other programs in the place of ours: a foreign evaluation.json, and the names under which files are kept."""

from __future__ import annotations

import itertools
import json
import os
import stat
from typing import TYPE_CHECKING, Any

from slop_code._io import TooLargeError, read_bounded
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.report import RESULT_FILE
from slop_code.evaluation.result_files.stored_record import SIZE_LIMIT
from slop_code.execution.sandbox import REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

COMPANIONS = {RESULT_FILE: "evaluation"}
"""Folder that SlopCodeBench writes beside a file: it is renamed with it, by the same number."""

KEPT = ".scb"
"""Put before the suffix of a name: `evaluation.json` is kept as `evaluation.scb.json`."""


def is_foreign_result(path: Path) -> bool:
    """Whether another program wrote this evaluation.json.

    An empty one, or one that cannot be parsed, counts as ours, as damaged, only where evidence of ours lies beside it.
    """
    if not can_be_replaced(path):
        return False
    document = parse_json(path)
    if not document:
        return not (path.parent / REPORTS_DIR).is_dir()
    is_object = isinstance(document, dict) and {"problem_name", "checkpoint_name"} <= document.keys()
    return not (is_object and isinstance(document.get("tests"), list))


def rename_or_refuse(files: Sequence[Path], step: str | None) -> None:
    """Rename files of other programs, or raise a UsageError with the step that the user can take instead.

    `step` None: rename.
    """
    if step is None:
        _set_aside(files)
    elif files:
        more = f", and {len(files) - 1} more file{'s' * (len(files) > 2)}" if len(files) > 1 else ""
        raise UsageError(f"{files[0]}{more}: written by another program, and would be replaced; {step}")


def _set_aside(files: Iterable[Path]) -> None:
    """Rename each file, its companion first: after an interruption the file is still there, and the next call ends it.

    No name that exists is taken.
    """
    for path in files:
        companion = path.with_name(COMPANIONS[path.name]) if path.name in COMPANIONS else None
        both = [companion, path] if companion is not None and os.path.lexists(companion) else [path]
        numbers = itertools.count(1)
        number = next(n for n in numbers if not any(os.path.lexists(kept_name(each, n)) for each in both))
        try:
            for each in both:
                os.rename(each, kept_name(each, number))
        except OSError as error:
            raise InfrastructureError(
                f"{error.filename or path}: cannot be renamed: {error.strerror}; make its folder writable"
            ) from error


def kept_name(path: Path, number: int = 1) -> Path:
    """The name to which a file is renamed; the number tells it from earlier ones."""
    return path.with_name(f"{path.stem}{KEPT}{f'.{number}' if number > 1 else ''}{path.suffix}")


def last_kept(path: Path) -> Path:
    """The file that was renamed last, whether there is one or not."""
    number = 1
    while os.path.lexists(kept_name(path, number + 1)):
        number += 1
    return kept_name(path, number)


def can_be_replaced(path: Path) -> bool:
    """No file replaces a folder."""
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def parse_json(path: Path) -> Any:
    """None where the file cannot be read or parsed; links are not followed."""
    try:
        return json.loads(read_bounded(path, SIZE_LIMIT))
    except (OSError, TooLargeError, ValueError, RecursionError):
        return None
