"""Delivery of a job's result to the output folder of a submission."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.execution.sandbox import REPORTS_DIR
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.result_archive import clear_output, unpack_result
from slop_code.runs.run_layout import RESULT_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.runs.job_records import JobResult, Submission

FATAL = {errno.ENOSPC: "make room", errno.EDQUOT: "make room", errno.EROFS: "make it writable"}
"""Errors that every other result would meet as well, each with the next step."""


def deliver(target: Submission, result: JobResult, *, move: bool) -> CheckpointFacts:
    """The facts of the target: a verdict that cannot be written is none. A full disk ends the run.

    `move`: nobody else needs the result's temporary folder.
    """
    if target.output is None or result.archive is None:
        return result.facts
    try:
        if not (move and result.folder is not None and move_result(result.folder, target.output)):
            unpack_result(result.archive, target.output)
    except OSError as error:
        message = f"{error.filename2 or error.filename or target.output / RESULT_FILE}: {error.strerror}"
        if error.errno in FATAL:
            raise InfrastructureError(
                f"{message}; every result written before is whole: {FATAL[error.errno]} and start again"
            ) from error
        if result.facts.state == "evaluated":
            attempts = result.facts.attempts
            return CheckpointFacts.no_verdict(
                f"{message}; make it writable and evaluate the run again", attempts=attempts
            )
    return result.facts


def move_result(folder: Path, output: Path) -> bool:
    """Rename the files into `output`, evaluation.json last. False where that is on another file system."""
    clear_output(output)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.rename(folder / REPORTS_DIR, output / REPORTS_DIR)
        os.rename(folder / RESULT_FILE, output / RESULT_FILE)
    except OSError as error:
        if error.errno == errno.EXDEV:
            return False
        raise
    return True
