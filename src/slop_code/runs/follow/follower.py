"""Follower of a run: filter for its snapshots that are complete, and for those that are new."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from slop_code.runs.discover import issue_for
from slop_code.runs.follow.completeness import NO_DONE_FILE, Stamps, WatchedSnapshot, tree_stamp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.jobs.job_records import RunIssue, Submission

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Follower:
    settle_s: float
    """Seconds for which a snapshot and its done file stay unchanged before it is complete."""

    clock: Callable[[], float] = time.monotonic
    settling: bool = False
    """Whether a snapshot with a done file was held back the last time."""

    _watched: dict[Path, WatchedSnapshot] = field(default_factory=dict)
    _evaluated: dict[Path, str | None] = field(default_factory=dict)
    """Stamp of each snapshot in the last evaluation."""

    def hold_back(self, run: DiscoveredRun) -> DiscoveredRun:
        """The run as it is now. Each snapshot that is not complete is an issue instead of a submission."""
        complete: list[Submission] = []
        issues: list[RunIssue] = []
        reasons = set()
        for submission in run.submissions:
            now, stamps = self.clock(), Stamps.of(submission.path)
            watched = WatchedSnapshot.next(self._watched.get(submission.path), stamps, self.clock())
            self._watched[submission.path] = watched
            reason = watched.incomplete_reason(now, self.settle_s)
            reasons.add(reason)
            if reason is None:
                complete.append(submission)
            else:
                issues.append(issue_for(submission, reason))
        _log.debug("looked at %s: %d snapshots are complete, %d are not", run.folder, len(complete), len(issues))
        self.settling = bool(reasons - {None, NO_DONE_FILE})
        return replace(run, submissions=tuple(complete), issues=(*run.issues, *issues))

    def has_new(self, run: DiscoveredRun) -> bool:
        """Whether a complete snapshot was not evaluated as it is now."""
        return any(self._stamp(item) != self._evaluated.get(item.path) for item in run.submissions)

    def is_unchanged(self, submission: Submission) -> bool:
        """Whether the snapshot is still the one that was complete."""
        return tree_stamp(submission.path) == self._stamp(submission)

    def evaluated(self, run: DiscoveredRun) -> None:
        """A snapshot that changed during the evaluation is new once it is complete again."""
        self._evaluated.update({submission.path: self._stamp(submission) for submission in run.submissions})

    def _stamp(self, submission: Submission) -> str | None:
        return self._watched[submission.path].stamps.tree
