"""The sides of a comparison, read: of a checkpoint what each run says of it, of a test a letter for each run."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from slop_code._io import digest_of
from slop_code.runs.read_results import folder_of, read_runs, runs_below
from slop_code.runs.run_layout import named_runs, natural_order

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slop_code.evaluation.groups import GroupType
    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.evaluation.reports.raw_test import Status
    from slop_code.runs.read_results import RunResults, StoredCheckpoint

LETTERS: dict[Status, str] = {"passed": "p", "failed": "f", "skipped": "s", "error": "e"}
STATUSES: dict[str, Status] = {letter: status for status, letter in LETTERS.items()}
ABSENT = "."
REASON_LENGTH = 2000
"""Characters of a reason that are kept."""

Key = tuple[str, str]
"""Of a test: file and id."""


class Judge(NamedTuple):
    """What else than the submission decides a status."""

    tests: str | None = None
    config: str = ""
    environment: str = ""
    image: str | None = None
    evaluation_version: str = ""
    python: str = ""
    test_dependencies: str = ""


NOBODY = Judge()


@dataclass(frozen=True, slots=True)
class Side:
    name: str
    runs: tuple[str, ...]
    places: range
    """Of its runs among those of all sides."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one run has of a checkpoint."""

    passed: bool | None = None
    """None where there is no verdict."""
    reason: str | None = "the run does not have this checkpoint"
    submission: str | None = None
    """Its digest; None where that is not known."""
    judge: Judge = NOBODY
    folder: Path | None = None

    @property
    def letter(self) -> str:
        return ABSENT if self.passed is None else LETTERS["passed" if self.passed else "failed"]


NOTHING = Seen()


@dataclass(slots=True, eq=False)
class CheckpointRuns:
    """One checkpoint, in all runs of all sides."""

    problem: str
    checkpoint: str
    order: int
    seen: list[Seen]
    tests: dict[Key, bytearray] = field(default_factory=dict)
    """A letter for each run: thousands of runs fit into memory."""
    groups: dict[Key, GroupType] = field(default_factory=dict)

    @property
    def verdicts(self) -> str:
        return "".join(seen.letter for seen in self.seen)

    def put(self, place: int, entry: StoredCheckpoint, policy: Policy) -> None:
        self.seen[place] = _seen(entry, policy)
        if entry.results is None or self.seen[place].passed is None:
            return
        for test in entry.results.tests:
            if test.quarantined:
                continue
            key = sys.intern(test.file_path), sys.intern(test.id)
            letters = self.tests.setdefault(key, bytearray(ABSENT.encode() * len(self.seen)))
            letters[place] = ord(LETTERS[test.status])
            self.groups[key] = test.group_type


def read_sides(folders: Sequence[Path], policy: Policy) -> tuple[list[Side], list[CheckpointRuns]]:
    """Each folder is a run, or holds runs that are samples of the same agent."""
    sides: list[Side] = []
    runs: list[RunResults] = []
    for name, folder in named_runs([folder_of(path) for path in folders]):
        found = read_runs(runs_below(folder))
        sides.append(Side(name, tuple(run.name for run in found), range(len(runs), len(runs) + len(found))))
        runs += found
    checkpoints: dict[Key, CheckpointRuns] = {}
    for place, run in enumerate(runs):
        for entry in run.entries():
            line = entry.line
            key = line.problem, line.checkpoint
            if key not in checkpoints:
                checkpoints[key] = CheckpointRuns(*key, line.order, [NOTHING] * len(runs))
            checkpoints[key].put(place, entry, policy)
    return sides, sorted(checkpoints.values(), key=lambda one: (one.problem, one.order, natural_order(one.checkpoint)))


def _seen(entry: StoredCheckpoint, policy: Policy) -> Seen:
    line, results = entry.line, entry.results
    if results is None or line.state != "evaluated":
        return Seen(reason=(line.reason or "")[:REASON_LENGTH])
    submission = results.provenance.digests.submission
    return Seen(line.passes(policy), None, submission, _judge(results), entry.folder)


def _judge(results: CorrectnessResults) -> Judge:
    found = results.provenance
    given = found.digests
    tools = found.evaluation_version, found.python, digest_of(found.test_dependencies)
    return Judge(given.tests, given.config, given.environment, given.image, *tools)
