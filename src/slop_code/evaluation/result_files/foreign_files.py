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

RENAMED_INFIX = ".scb"
"""Put before the suffix of a name: `evaluation.json` is kept as `evaluation.scb.json`."""


def is_foreign_result(path: Path) -> bool:
    """Whether another program wrote this evaluation.json.

    An empty or unparsable file counts as a damaged result of ours only if a `.scbench` folder lies beside it.
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

    They are renamed if `step` is None.
    """
    if step is None:
        _rename_all(files)
    elif files:
        more = f", and {len(files) - 1} more file{'s' * (len(files) > 2)}" if len(files) > 1 else ""
        raise UsageError(f"{files[0]}{more}: written by another program, and would be replaced; {step}")


def _rename_all(files: Iterable[Path]) -> None:
    """Rename each file after its companion, so that a call after an interruption still finds the file and goes on.

    An existing file is never overwritten.
    """
    for path in files:
        companion = path.with_name(COMPANIONS[path.name]) if path.name in COMPANIONS else None
        both = [companion, path] if companion is not None and os.path.lexists(companion) else [path]
        numbers = itertools.count(1)
        number = next(n for n in numbers if not any(os.path.lexists(renamed_path(each, n)) for each in both))
        try:
            for each in both:
                os.rename(each, renamed_path(each, number))
        except OSError as error:
            raise InfrastructureError(
                f"{error.filename or path}: cannot be renamed: {error.strerror}; make its folder writable"
            ) from error


def renamed_path(path: Path, number: int = 1) -> Path:
    """The name to which a file is renamed; the number tells it from earlier ones."""
    return path.with_name(f"{path.stem}{RENAMED_INFIX}{f'.{number}' if number > 1 else ''}{path.suffix}")


def last_renamed(path: Path) -> Path:
    """The file that was renamed last, whether there is one or not."""
    number = 1
    while os.path.lexists(renamed_path(path, number + 1)):
        number += 1
    return renamed_path(path, number)


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
