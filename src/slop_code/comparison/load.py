"""Loader of the sides of a comparison: the verdicts of each checkpoint by run, and the statuses of its tests."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from slop_code._io import digest_of
from slop_code.errors import UsageError
from slop_code.evaluation.policy import NAMED_POLICIES
from slop_code.runs.folders.result_folders import folder_of, runs_below
from slop_code.runs.read_results import read_runs
from slop_code.runs.run_layout import named_runs, natural_order
from slop_code.runs.samples import copies_among
from slop_code.runs.scb.load_result import is_scb

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
MAX_REASON_LENGTH = 2000

TestKey = tuple[str, str]
"""File and id of a test."""


class JudgeInputs(NamedTuple):
    """Everything besides the submission that decides a status."""

    tests: str | None = None
    config: str = ""
    environment: str = ""
    image: str | None = None
    evaluation_version: str = ""
    submission_python: str | None = None
    python: str = ""
    test_dependencies: str = ""


NO_JUDGE = JudgeInputs()


@dataclass(frozen=True, slots=True)
class Side:
    name: str
    runs: tuple[str, ...]
    run_numbers: range
    """Indexes of its runs among those of all sides."""

    copies: frozenset[int] = frozenset()
    """Indexes of its runs with the same submissions as another of its runs, which are no further samples."""

    unreadable: list[str] = field(default_factory=list)
    """Results that cannot be read, each with the reason."""

    @property
    def samples(self) -> list[int]:
        return [number for number in self.run_numbers if number not in self.copies]


@dataclass(frozen=True, slots=True)
class RunCheckpoint:
    """A checkpoint in a run."""

    passed: bool | None = None
    """None where there is no verdict."""
    reason: str | None = "the run does not have this checkpoint"
    submission: str | None = None
    """Its digest; None where it is unknown."""
    judge: JudgeInputs = NO_JUDGE
    folder: Path | None = None
    passed_by: frozenset[str] = frozenset()
    """The named policies by which it passed."""
    recorded: bool = True
    """It is False if another runner evaluated it, and did not record what its statuses depend on."""

    def by_policy(self, policy: str) -> RunCheckpoint:
        return self if self.passed is None else replace(self, passed=policy in self.passed_by)

    @property
    def letter(self) -> str:
        return ABSENT if self.passed is None else LETTERS["passed" if self.passed else "failed"]


ABSENT_CHECKPOINT = RunCheckpoint()


@dataclass(slots=True, eq=False)
class CheckpointRuns:
    """One checkpoint, in all runs of all sides."""

    problem: str
    checkpoint: str
    order: int
    by_run: list[RunCheckpoint]
    tests: dict[TestKey, bytearray] = field(default_factory=dict)
    """Statuses by test, one letter per run, so that thousands of runs fit into memory."""
    groups: dict[TestKey, GroupType] = field(default_factory=dict)

    @property
    def verdicts(self) -> str:
        return "".join(by_run.letter for by_run in self.by_run)

    def by_policy(self, policy: str) -> CheckpointRuns:
        """The same runs with the verdicts of another named policy."""
        return replace(self, by_run=[run.by_policy(policy) for run in self.by_run])

    def add(self, number: int, entry: StoredCheckpoint, policy: Policy) -> None:
        self.by_run[number] = _run_checkpoint(entry, policy)
        if entry.results is None or self.by_run[number].passed is None:
            return
        for test in entry.results.tests:
            if test.quarantined:
                continue
            key = sys.intern(test.file_path), sys.intern(test.id)
            letters = self.tests.setdefault(key, bytearray(ABSENT.encode() * len(self.by_run)))
            letters[number] = ord(LETTERS[test.status])
            self.groups[key] = test.group_type


def read_sides(
    folders: Sequence[Path], policy: Policy, *, samples: bool = False
) -> tuple[list[Side], list[CheckpointRuns]]:
    """Each folder is a run. With `samples` it may hold several runs, which are samples of the same agent."""
    sides: list[Side] = []
    runs: list[RunResults] = []
    for name, folder in named_runs([folder_of(path) for path in folders]):
        side_runs = read_runs(runs_below(folder))
        if len(side_runs) > 1 and not samples:
            raise UsageError(
                f"{folder}: a folder of {len(side_runs)} runs; give --samples if all are samples of the same agent, "
                "else one of them"
            )
        numbers = range(len(runs), len(runs) + len(side_runs))
        sides.append(Side(name, tuple(run.name for run in side_runs), numbers))
        runs += side_runs
    checkpoints: dict[TestKey, CheckpointRuns] = {}
    submissions: dict[int, dict[TestKey, str | None]] = {}
    for number, run in enumerate(runs):
        for entry in run.entries():
            line = entry.line
            key = line.problem, line.checkpoint
            if key not in checkpoints:
                checkpoints[key] = CheckpointRuns(*key, line.order, [ABSENT_CHECKPOINT] * len(runs))
            checkpoints[key].add(number, entry, policy)
            submissions.setdefault(number, {})[key] = line.submission_digest
    for side in sides:
        side.unreadable.extend(message for number in side.run_numbers for message in runs[number].unreadable)
    copies = [
        copies_among({number: submissions[number] for number in side.run_numbers if number in submissions})
        for side in sides
    ]
    counted = [replace(side, copies=frozenset(own)) for side, own in zip(sides, copies, strict=True)]
    return counted, sorted(checkpoints.values(), key=_order)


def _order(checkpoint: CheckpointRuns) -> tuple[str, int, list[tuple[int, str]]]:
    return checkpoint.problem, checkpoint.order, natural_order(checkpoint.checkpoint)


def _run_checkpoint(entry: StoredCheckpoint, policy: Policy) -> RunCheckpoint:
    line, results = entry.line, entry.results
    if results is None or line.state != "evaluated":
        return RunCheckpoint(reason=(line.reason or "")[:MAX_REASON_LENGTH])
    submission = results.provenance.digests.submission
    passed_by = frozenset(str(named) for named in NAMED_POLICIES if line.passes(named))
    return RunCheckpoint(
        line.passes(policy), None, submission, _judge(results), entry.folder, passed_by, not is_scb(results)
    )


def _judge(results: CorrectnessResults) -> JudgeInputs:
    provenance = results.provenance
    digests = provenance.digests
    return JudgeInputs(
        digests.tests,
        digests.config,
        digests.environment,
        digests.image,
        provenance.evaluation_version,
        digests.python,
        provenance.python,
        digest_of(provenance.test_dependencies),
    )
