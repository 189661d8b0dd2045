"""A result, put where its submission wants it."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.discover import RESULT_FILE
from slop_code.runs.result_archive import unpack

if TYPE_CHECKING:
    from slop_code.runs.job_records import Submission

ENDING = {errno.ENOSPC: "make room", errno.EDQUOT: "make room", errno.EROFS: "make it writable"}
"""What is the same for every other result; and what to do."""


def deliver(target: Submission, facts: CheckpointFacts, parcel: bytes | None) -> CheckpointFacts:
    """What can be said of it: a verdict is none where it cannot be written; a full disk ends the run."""
    if target.output is None or parcel is None:
        return facts
    try:
        unpack(parcel, target.output)
    except OSError as error:
        told = f"{error.filename or target.output / RESULT_FILE}: {error.strerror}"
        if error.errno in ENDING:
            raise InfrastructureError(
                f"{told}; every result written before is whole: {ENDING[error.errno]} and start again"
            ) from error
        if facts.state == "evaluated":
            return CheckpointFacts.none(f"{told}; make it writable and evaluate the run again", attempts=facts.attempts)
    return facts
