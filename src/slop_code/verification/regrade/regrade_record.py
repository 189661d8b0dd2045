"""Record of a regrade: `regrade.json`, beside the earlier results that it replaced."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from slop_code._io import write_atomic
from slop_code.evaluation.groups import GroupType  # noqa: TC001  (pydantic reads it)
from slop_code.evaluation.reports.raw_test import Status  # noqa: TC001  (pydantic reads it)
from slop_code.evaluation.result_files.stored_record import Stored, load_stored

if TYPE_CHECKING:
    from pathlib import Path

RECORD_FILE = "regrade.json"


class ChangeKind(StrEnum):
    NEW = "new"
    GONE = "gone"
    CHANGED = "changed"
    """The test itself, or something that it may use."""
    STATUS = "status"
    GROUP = "group"
    """Another group, or in quarantine before or now."""


class RegradeOutcome(StrEnum):
    """What a regrade does to a checkpoint, in its plan and in its record."""

    UNCHANGED = "unchanged"
    GRADED = "graded again"
    """From the stored evidence; nothing ran."""
    EVALUATED = "evaluated again"
    FIRST = "evaluated for the first time"
    NOT_REGRADED = "not regraded"
    """The earlier result is in its place."""


class TestState(Stored):
    __test__ = False

    status: Status
    group: GroupType
    quarantined: bool = False


class RegradedTest(Stored):
    __test__ = False

    test: str
    kinds: list[ChangeKind]
    why: list[str]
    old: TestState | None
    """Its state before, or None if there was no such test."""
    new: TestState | None


class VerdictChange(Stored):
    policy: str
    old: bool
    new: bool


class RegradedCheckpoint(Stored):
    problem: str
    checkpoint: str
    outcome: RegradeOutcome
    reason: str | None = None
    """Why it was regraded, or why it could not be."""
    verdicts: list[VerdictChange] = Field(default_factory=list)
    tests: list[RegradedTest] = Field(default_factory=list)

    @property
    def differs(self) -> bool:
        """Whether a test or a verdict counts otherwise than before."""
        return bool(self.verdicts) or any(test.kinds != [ChangeKind.CHANGED] for test in self.tests)


class RegradeRecord(Stored):
    schema_version: Literal[1] = 1
    label: str
    finished: bool
    """It is False if it was interrupted. The same command completes it then."""
    slop_code: str
    checkpoints: list[RegradedCheckpoint] = Field(default_factory=list)

    @property
    def differs(self) -> bool:
        return any(checkpoint.differs for checkpoint in self.checkpoints)

    @property
    def failed(self) -> bool:
        return any(checkpoint.outcome == RegradeOutcome.NOT_REGRADED for checkpoint in self.checkpoints)

    def save(self, folder: Path) -> None:
        write_atomic(folder / RECORD_FILE, self.model_dump_json(indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> RegradeRecord:
        return load_stored(cls, folder / RECORD_FILE, "regrade the run again")
