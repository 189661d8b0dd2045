"""stop.json: message to the agent's harness about a checkpoint that did not reach a policy."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Self

from slop_code._io import write_atomic
from slop_code.errors import ResultError, UsageError
from slop_code.evaluation.groups import GroupType  # noqa: TC001  (pydantic reads it)
from slop_code.evaluation.result_files.stored_record import Stored, load_stored

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.policy import Policy
    from slop_code.runs.checkpoint_lines import CheckpointFacts
    from slop_code.runs.jobs.job_records import Submission

STOP_FILE = "stop.json"


class StopFile(Stored):
    run: str
    problem: str
    checkpoint: str
    policy: str
    """The policy that the checkpoint did not reach, as the user gave it."""

    pass_counts: dict[GroupType, int]
    total_counts: dict[GroupType, int]
    submission: str | None
    """Digest of the snapshot."""

    time: str
    """ISO 8601, UTC."""

    @classmethod
    def of(cls, submission: Submission, facts: CheckpointFacts, policy: Policy) -> Self:
        return cls(
            run=submission.run,
            problem=submission.problem.name,
            checkpoint=submission.checkpoint.name,
            policy=str(policy),
            pass_counts=facts.pass_counts,
            total_counts=facts.total_counts,
            submission=facts.digests.submission if facts.digests else None,
            time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        )

    def write(self, folder: Path) -> Path:
        """A file of another maker may have appeared meanwhile: it is a UsageError."""
        check_stop_file(folder)
        write_atomic(folder / STOP_FILE, self.model_dump_json(indent=2) + "\n")
        return folder / STOP_FILE


def misses(facts: CheckpointFacts, policy: Policy) -> bool:
    """Whether there is a verdict that does not reach the policy; without a verdict, nothing is known of the agent."""
    return facts.state == "evaluated" and not facts.passes(policy)


def check_stop_file(folder: Path) -> None:
    """A file of another maker is never replaced: it is a UsageError."""
    if os.path.lexists(folder / STOP_FILE) and not _is_ours(folder / STOP_FILE):
        raise UsageError(f"{folder / STOP_FILE}: not written by slop-code; --stop-at writes this file, so move it away")


def remove_stop_file(folder: Path) -> None:
    """Removes the file of an earlier evaluation, and none of another maker."""
    if _is_ours(folder / STOP_FILE):
        (folder / STOP_FILE).unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    try:
        load_stored(StopFile, path, "")
    except ResultError:
        return False
    return True
