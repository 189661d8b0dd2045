"""What a comparison of runs says: the records, and the document they are stored in."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from slop_code.evaluation.groups import GroupType  # noqa: TC001  (pydantic reads it)
from slop_code.evaluation.report import Stored
from slop_code.evaluation.reports.raw_test import Status  # noqa: TC001
from slop_code.runs.samples import Figures

Change = Literal["lost", "gained", "flaky", "rejudged", "came", "went"]


class SideRuns(Stored):
    name: str
    runs: list[str]


class Verdicts(Figures):
    passed: int
    runs: int
    """That have a verdict."""


class CheckpointChange(Stored):
    problem: str
    checkpoint: str
    base: Verdicts
    other: Verdicts
    change: Change | None
    """None where it is the same, or where a side has no verdict."""
    tests: dict[Change, int]
    p: float | None = None
    """Fisher's exact test; None where a side has fewer than two verdicts."""
    p_adjusted: float | None = None
    """By Holm, over the checkpoints of this pair that have one."""

    @property
    def compared(self) -> bool:
        return self.base.runs > 0 and self.other.runs > 0


class TestChange(Stored):
    __test__ = False

    problem: str
    checkpoint: str
    file_path: str
    id: str
    group_type: GroupType
    change: Change
    base: dict[Status, int]
    """Runs by status; empty where no run has it."""
    other: dict[Status, int]

    @property
    def nodeid(self) -> str:
        return f"{self.file_path}::{self.id}"


class NoVerdict(Stored):
    side: str
    run: str
    problem: str
    checkpoint: str
    reason: str


class Difference(Figures):
    """Of the runs' shares of what was passed: a permutation test."""

    tasks: int
    base: float
    """Mean over runs."""
    other: float
    p: float
    arrangements: int
    seed: int | None
    """None where every arrangement was looked at."""


class Significance(Figures):
    smallest_p: float
    """That is possible with so many runs."""
    checkpoints: Difference
    """That every run has a verdict on."""
    problems: Difference | None
    """That every run has all verdicts on: solved as a whole."""


class Pair(Stored):
    """One side compared with the base."""

    base: str
    other: str
    changed_checkpoints: dict[Change, int]
    changed_tests: dict[Change, int]
    significance: Significance | None
    no_significance: str | None
    """Why there is none."""
    other_judge: list[str]
    """What differs between runs of the same submission that were judged differently: tests, tools, the environment."""
    only_base: list[str]
    """Problems that the other does not have."""
    only_other: list[str]
    no_verdicts: list[NoVerdict]
    checkpoints: list[CheckpointChange]
    tests: list[TestChange]
    """Those that differ."""

    @property
    def lost(self) -> bool:
        return self.changed_tests["lost"] + self.changed_checkpoints["lost"] > 0

    @property
    def unknown_base(self) -> list[CheckpointChange]:
        """No run of it has a verdict there."""
        return [one for one in self.checkpoints if not one.base.runs]

    @property
    def unknown_other(self) -> list[CheckpointChange]:
        return [one for one in self.checkpoints if not one.other.runs]

    @property
    def unanswered(self) -> bool:
        """What the base has a verdict on, and the other has none: whether it was lost is not known."""
        return any(one.base.runs for one in self.unknown_other)


class Comparison(Stored):
    schema_version: Literal[1] = 1
    slop_code: str
    policy: str
    sides: list[SideRuns]
    """The first is the base."""
    warnings: list[str] = Field(default_factory=list)
    pairs: list[Pair]

    @property
    def lost(self) -> bool:
        return any(pair.lost for pair in self.pairs)
