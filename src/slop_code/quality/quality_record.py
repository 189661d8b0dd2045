"""Quality record: the figures of scb-check for one snapshot, stored as `quality.json` beside the verdict."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field

from slop_code._arguments import check_path
from slop_code._io import write_atomic
from slop_code.errors import ResultError, UsageError
from slop_code.evaluation.result_files.stored_record import Stored, load_stored
from slop_code.runs.folders.result_folders import QUALITY_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.runs.read_results import StoredCheckpoint

MAX_FILE_BYTES = 4 << 20
MEASURE_AGAIN = "measure it again with `slop-code metrics`"
NO_FILES = "there are no source files that scb-check reads"
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


class CodePart(StrEnum):
    """The parts of a submission that are measured apart."""

    IMPLEMENTATION = "implementation"
    TESTS = "tests"


class QualityFigures(Stored):
    """Of the files of one part."""

    verbosity: Share
    """Share of source lines that clones, rules or the structure flag."""
    erosion: Share
    """Share of the mass that lies in functions of cyclomatic complexity above 10."""
    cog_erosion: Share
    """The same with cognitive complexity."""
    source_lines: Count
    max_complexity: Count | None
    """Largest cyclomatic complexity of a function, or None if there is no function."""
    files: Annotated[int, Field(ge=1)]
    functions: Count
    high_cc_functions: Count
    """Functions of cyclomatic complexity above 10."""
    high_cog_functions: Count
    flagged_lines: Count
    clone_lines: Count
    languages: dict[str, Count]
    """Files by language."""


class LeftOut(Stored):
    """Files that were not measured."""

    reason: str
    files: Annotated[int, Field(ge=1)]
    first: list[str]
    """Paths of the first of them."""


class QualityProvenance(Stored):
    scb_check: str
    """Its version."""
    lock: str
    """SHA-256 of the lock of its environment."""
    python: str | None
    """Version of the Python that ran it."""
    sandbox: str
    slop_code: str


class QualityRecord(Stored):
    schema_version: Literal[1] = 1
    tool: Literal["scb-check"] = "scb-check"
    submission: str
    """Digest of the submission, as in the provenance of its verdict."""
    implementation: QualityFigures | None = None
    tests: QualityFigures | None = None
    """Of the submission's own tests."""
    reasons: dict[CodePart, str] = Field(default_factory=dict)
    """Why a part has no figures: it has no source files, or its measurement failed."""
    left_out: list[LeftOut] = Field(default_factory=list)
    incomplete: dict[CodePart, Count] = Field(default_factory=dict)
    """Of each part, the left-out files of languages that are measured. Such figures are not those of the whole part,
    as a submission decides which of its files can be measured."""
    provenance: QualityProvenance

    @property
    def failures(self) -> dict[CodePart, str]:
        """The reasons of the parts that have source files, and so should have figures."""
        return {part: reason for part, reason in self.reasons.items() if reason != NO_FILES}

    @property
    def is_incomplete(self) -> bool:
        """Whether files of the implementation should have been measured, and are not."""
        return CodePart.IMPLEMENTATION in self.incomplete or CodePart.IMPLEMENTATION in self.failures

    @property
    def whole_implementation(self) -> QualityFigures | None:
        """Figures of the implementation; None where some of its files are not in them."""
        return None if self.is_incomplete else self.implementation

    @classmethod
    def load(cls, folder: Path | str) -> QualityRecord | None:
        """The record of a checkpoint's folder, or None if it was not measured.

        Raises ResultError if it cannot be read.
        """
        path = check_path("folder", folder, "the path of a folder") / QUALITY_FILE
        return load_stored(cls, path, MEASURE_AGAIN, MAX_FILE_BYTES) if os.path.lexists(path) else None

    def is_worse_than(self, earlier: QualityRecord | None) -> bool:
        """Whether a part failed that has figures there, of the same submission and with the same tool."""
        if earlier is None:
            return False
        is_same = (self.submission, self.provenance.lock) == (earlier.submission, earlier.provenance.lock)
        return is_same and any(getattr(earlier, part) is not None for part in self.failures)

    def save(self, folder: Path) -> None:
        text = json.dumps(self.model_dump(mode="json"), indent=2, ensure_ascii=False, allow_nan=False)
        write_atomic(folder / QUALITY_FILE, text + "\n")


class MeasuredQuality(NamedTuple):
    record: QualityRecord | None = None
    note: str | None = None
    """Why the record beside the result is not used."""


def quality_of(entry: StoredCheckpoint, unreadable: list[str]) -> MeasuredQuality:
    """The record of the evaluated submission; any record where the digest of the submission is not recorded.

    The reason why a record cannot be read is added to `unreadable`.
    """
    if entry.folder is None:
        return MeasuredQuality()
    try:
        record = QualityRecord.load(entry.folder)
    except ResultError as error:
        unreadable.append(str(error))
        return MeasuredQuality(note=f"{QUALITY_FILE} cannot be read")
    if record is not None and entry.line.submission_digest not in (None, record.submission):
        return MeasuredQuality(note=f"{QUALITY_FILE} is of another submission")
    return MeasuredQuality(record)


def replaceable_record(folder: Path) -> QualityRecord | None:
    """The record that a new one may replace. UsageError where `quality.json` is not one of ours."""
    try:
        return QualityRecord.load(folder)
    except ResultError as error:
        path, step = folder / QUALITY_FILE, "it is not replaced; move it away"
        raise UsageError(f"{path}: not a record of slop-code ({error.fact}); {step}") from error
