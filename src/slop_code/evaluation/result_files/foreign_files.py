"""Files of other programs that have the names of our results: recognised before anything is evaluated, never replaced.

A file that cannot be parsed counts as ours, a damaged one, only where something of ours lies beside it.
"""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any

from slop_code._io import TooLargeError, read_bounded
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.report import RESULT_FILE, SIZE_LIMIT
from slop_code.execution.sandbox import REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

LINES_FILE = "checkpoint_results.jsonl"
SUMMARY_FILE = "summary.json"
COMPANIONS = {RESULT_FILE: "evaluation", LINES_FILE: "result.json"}
"""Files and folders that SlopCodeBench writes beside a file: they are renamed with it."""

KEPT = ".scb"
"""Put before the suffix of a name: `evaluation.json` is kept as `evaluation.scb.json`."""

_OWN_LINE = {"run", "problem", "checkpoint", "order"}
_FOREIGN_LINE = {"strict_pass_rate", "version", "path", "idx"}


def is_foreign_result(path: Path, *, indexed: bool = False) -> bool:
    """Whether another program wrote this evaluation.json. `indexed`: a result of ours was there before."""
    if not _can_be_replaced(path):
        return False
    document = _parse(_read(path))
    tests = document.get("tests")
    if isinstance(tests, list) and "problem_name" in document and "checkpoint_name" in document:
        return False
    return isinstance(tests, dict) or not (indexed or (path.parent / REPORTS_DIR).is_dir())


def foreign_summary_files(folder: Path) -> list[Path]:
    """Which of checkpoint_results.jsonl and summary.json in this folder another program wrote."""
    own = {folder / LINES_FILE: _is_own_lines, folder / SUMMARY_FILE: _is_own_summary}
    there = {path: recognise(_read(path)) for path, recognise in own.items() if _can_be_replaced(path)}
    damaged_counts_as_own = True in there.values()
    return [path for path, ours in there.items() if ours is False or (ours is None and not damaged_counts_as_own)]


def check_no_foreign(files: Sequence[Path], step: str) -> None:
    """`step` tells the user what to do instead."""
    if files:
        more = f", and {len(files) - 1} more files" if len(files) > 1 else ""
        raise UsageError(f"{files[0]}{more}: written by another program, and would be replaced; {step}")


def set_aside(files: Iterable[Path]) -> None:
    """Rename each file, its companion first: after an interruption the file is still there, and the next call ends it.

    No name that exists is taken.
    """
    for path in files:
        companion = COMPANIONS.get(path.name)
        try:
            for original in (*([path.with_name(companion)] if companion else []), path):
                if os.path.lexists(original):
                    os.rename(original, _free_name(original))
        except OSError as error:
            raise InfrastructureError(
                f"{error.filename or path}: cannot be renamed: {error.strerror}; make its folder writable"
            ) from error


def kept_name(path: Path, number: int = 1) -> Path:
    """The name to which a file is renamed; the number tells it from earlier ones."""
    return path.with_name(f"{path.stem}{KEPT}{f'.{number}' if number > 1 else ''}{path.suffix}")


def _free_name(path: Path) -> Path:
    number = 1
    while os.path.lexists(target := kept_name(path, number)):
        number += 1
    return target


def _can_be_replaced(path: Path) -> bool:
    """No file replaces a folder."""
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _read(path: Path) -> bytes:
    """Empty where it cannot be read; links are not followed."""
    try:
        return read_bounded(path, SIZE_LIMIT)
    except (OSError, TooLargeError):
        return b""


def _parse(text: bytes) -> dict[str, Any]:
    """The object in a JSON text; empty where there is none."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _is_own_lines(text: bytes) -> bool | None:
    """None where no line tells; a single line of another program is enough to keep the file."""
    keys = [_parse(line).keys() for line in text.splitlines()]
    if any(line & _FOREIGN_LINE and not line >= _OWN_LINE for line in keys):
        return False
    return True if any(line >= _OWN_LINE for line in keys) else None


def _is_own_summary(text: bytes) -> bool | None:
    document = _parse(text)
    if not document:
        return None
    return "slop_code" in document
