"""Names of the evidence files in `.scbench`, and their removal."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from slop_code.evaluation.test_code.test_inputs import INPUTS
from slop_code.execution.cache import remove_path
from slop_code.execution.sandbox import LOG, REPORTS_DIR

if TYPE_CHECKING:
    from pathlib import Path

JSON_REPORT = "pytest-report.json"
CTRF_REPORT = "ctrf-report.json"
STREAM = "stream.jsonl"
SHOWN = "shown.json"
"""Written only if the judge records which files the submission is shown; no verdict depends on it."""

EXIT = "exit.json"
ROSTER = "roster.json"
"""The roster of all pairs."""

COLLECTION = "collection"
"""Folder of what a failed collection of the tests left."""

ATTEMPT = "attempt-"
"""Folders of the evidence of other attempts, counted from 1: earlier ones, then a later one that replaced no verdict.

No verdict depends on them."""

FROM_JUDGE = (JSON_REPORT, CTRF_REPORT, STREAM, LOG, SHOWN)
FROM_EVALUATOR = (EXIT, ROSTER, INPUTS)
EVIDENCE_FILES = (*FROM_JUDGE, *FROM_EVALUATOR)

_OWN_FOLDER = re.compile(r"[1-9]\d*|repeat-[1-9]\d*")


def remove_evidence(output: Path | None) -> None:
    """Removes the evidence of an earlier evaluation, which must not be next to the new result."""
    if output is None:
        return
    top = output / REPORTS_DIR
    for folder in (top / COLLECTION, *top.glob(f"{ATTEMPT}[1-9]*")):
        remove_path(folder)
    own = [path for path in top.glob("*") if _OWN_FOLDER.fullmatch(path.name)]
    below = [folder for folder in own if folder.is_dir() and not folder.is_symlink()]
    for folder in (top, *below):
        for name in EVIDENCE_FILES:
            remove_path(folder / name)
    for folder in below:
        with contextlib.suppress(OSError):  # files of others stay
            folder.rmdir()
