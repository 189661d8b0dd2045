"""Files of attempts without a verdict, in folders of their own in the .scbench of a result."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from slop_code.errors import ResultError
from slop_code.evaluation.report import RESULT_FILE, CorrectnessResults
from slop_code.evaluation.result_files.evidence_files import ATTEMPT
from slop_code.execution.cache import remove_path
from slop_code.execution.sandbox import REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


def attempt_file(number: int, name: str) -> str:
    """The path in the result. `name` is the path in what the attempt left."""
    flat = name.removeprefix(f"{REPORTS_DIR}/").replace("/", "-")
    return f"{REPORTS_DIR}/{ATTEMPT}{number}/{flat}"


def keep_attempt(output: Path, names: Iterable[str], put: Callable[[str, Path], object]) -> Path:
    """Stores the files of an attempt without a verdict beside the verdict that stays, and returns their folder.

    They replace those of the previous such attempt. `put` gets each name and the path at which to write that file.
    """
    earlier = 0
    with contextlib.suppress(ResultError):  # damaged meanwhile: its attempts no longer matter
        earlier = len(CorrectnessResults.load(output / RESULT_FILE).attempts)
    folder = (output / attempt_file(earlier + 1, RESULT_FILE)).parent
    remove_path(folder)
    folder.mkdir(parents=True)
    for name in names:
        put(name, output / attempt_file(earlier + 1, name))
    return folder
