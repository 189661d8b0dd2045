"""Records of a comparison of runs, and the document that stores them."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from slop_code.evaluation.groups import GroupType  # noqa: TC001  (pydantic reads it)
from slop_code.evaluation.reports.raw_test import Status  # noqa: TC001
from slop_code.evaluation.result_files.stored_record import FrozenRecord, Stored

Change = Literal["lost", "gained", "flaky", "rejudged", "added", "removed"]
CHANGES: tuple[Change, ...] = get_args(Change)
"""In the order in which they are shown."""


class SideRuns(Stored):
    name: str
    runs: list[str]
    copies: list[str] = Field(default_factory=list)
    """Those of its runs that have the same submissions as another, and are no further samples."""


class Verdicts(FrozenRecord):
    passed: int
    runs: int
    """Runs with a verdict."""


class CheckpointChange(Stored):
    problem: str
    checkpoint: str
    base: Verdicts
    other: Verdicts
    change: Change | None
    """None where nothing changed, or a side has no verdict."""
    tests: dict[Change, int]
    p: float | None = None
    """Fisher's exact test; None where a side has fewer than two verdicts."""
    p_adjusted: float | None = None
    """By Holm, over the checkpoints of this pair that have a p value."""

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
    """Number of runs by status; empty where no run has the test."""
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


class Difference(FrozenRecord):
    """Permutation test over the shares of tasks that the runs passed."""

    tasks: int
    base: float
    """Mean over runs."""
    other: float
    p: float
    arrangements: int
    seed: int | None
    """None where every arrangement was compared."""


class Significance(FrozenRecord):
    smallest_p: float
    """The smallest p value that is possible with these numbers of runs."""
    checkpoints: Difference
    """Over checkpoints with a verdict in every run."""
    problems: Difference | None
    """Over problems with all verdicts in every run; a problem is passed if all its checkpoints are."""


class PairComparison(Stored):
    """One side compared with the base."""

    base: str
    other: str
    changed_checkpoints: dict[Change, int]
    changed_tests: dict[Change, int]
    significance: Significance | None
    no_significance: str | None
    """The reason why there is no significance."""
    other_judge: list[str]
    """Inputs of the judge that differ between runs of the same submission with different statuses."""
    only_base: list[str]
    """Problems that the other side lacks."""
    only_other: list[str]
    no_verdicts: list[NoVerdict]
    checkpoints: list[CheckpointChange]
    tests: list[TestChange]
    """Tests with a change."""

    @property
    def lost(self) -> bool:
        return self.changed_tests["lost"] + self.changed_checkpoints["lost"] > 0

    @property
    def unknown_base(self) -> list[CheckpointChange]:
        """Checkpoints without a verdict in any run of the base."""
        return [checkpoint for checkpoint in self.checkpoints if not checkpoint.base.runs]

    @property
    def unknown_other(self) -> list[CheckpointChange]:
        return [checkpoint for checkpoint in self.checkpoints if not checkpoint.other.runs]

    @property
    def unanswered(self) -> bool:
        """The other side has no verdict on a checkpoint on which the base has a verdict: it may be lost."""
        return any(checkpoint.base.runs for checkpoint in self.unknown_other)


class Comparison(Stored):
    schema_version: Literal[1] = 1
    slop_code: str
    policy: str
    sides: list[SideRuns]
    """The first is the base."""
    warnings: list[str] = Field(default_factory=list)
    unreadable: list[str] = Field(default_factory=list)
    """Results that cannot be read, each with the reason."""
    pairs: list[PairComparison]

    @property
    def lost(self) -> bool:
        return any(pair.lost for pair in self.pairs)
