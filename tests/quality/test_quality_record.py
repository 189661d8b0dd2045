"""`quality.json`: round trip, damage, and files of other makers."""

from __future__ import annotations

from typing import Any

import pytest

from slop_code.errors import ResultError, UsageError
from slop_code.quality.quality_record import (
    NO_FILES,
    QUALITY_FILE,
    CodePart,
    LeftOut,
    QualityFigures,
    QualityProvenance,
    QualityRecord,
    replaceable_record,
)

FIGURES = QualityFigures(
    verbosity=0.1, erosion=0.2, cog_erosion=0.3, source_lines=10, max_complexity=None, files=1, functions=0,
    high_cc_functions=0, high_cog_functions=0, flagged_lines=1, clone_lines=0, languages={"python": 1},
)  # fmt: skip


def quality(**fields: Any) -> QualityRecord:
    provenance = QualityProvenance(
        scb_check="0.2.0", lock="1" * 64, python="3.12.1", sandbox="bubblewrap", slop_code="1"
    )
    return QualityRecord.model_validate({"submission": "5ub", "provenance": provenance, **fields})


@pytest.mark.parametrize(
    "record",
    [
        quality(implementation=FIGURES, tests=FIGURES),
        quality(implementation=FIGURES, reasons={CodePart.TESTS: NO_FILES}),
        quality(reasons=dict.fromkeys(CodePart, "why")),
        quality(
            implementation=FIGURES, left_out=[LeftOut(reason="a link", files=7, first=["bad\udcff.py", "\x1b[0m"])]
        ),
    ],
)
def test_a_record_loads_as_it_was_saved(tmp_path, record):
    record.save(tmp_path)

    assert QualityRecord.load(tmp_path) == record


def test_a_folder_without_a_record_has_none(tmp_path):
    assert QualityRecord.load(tmp_path) is None


def test_a_side_without_files_is_no_failure():
    assert quality(reasons={CodePart.TESTS: NO_FILES}).failures == {}
    assert quality(reasons={CodePart.TESTS: "why"}).failures == {CodePart.TESTS: "why"}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"mass.cc": 1}', "\xff", '{"schema_version": 2}'])
def test_a_file_of_another_maker_is_neither_read_nor_replaced(tmp_path, text):
    (tmp_path / QUALITY_FILE).write_text(text)

    with pytest.raises(ResultError):
        QualityRecord.load(tmp_path)
    with pytest.raises(UsageError, match="not replaced"):
        replaceable_record(tmp_path)


def test_a_link_is_not_replaced(tmp_path):
    quality().save(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / QUALITY_FILE).symlink_to(tmp_path / QUALITY_FILE)

    with pytest.raises(UsageError, match="not replaced"):
        replaceable_record(tmp_path / "run")


@pytest.mark.parametrize(
    ("earlier", "worse"),
    [
        (None, False),
        (quality(implementation=FIGURES), True),
        (quality(implementation=FIGURES, submission="0ther"), False),
        (quality(reasons={CodePart.TESTS: "why"}), False),
        (quality(implementation=FIGURES, reasons={CodePart.TESTS: "why"}), True),
        (quality(tests=FIGURES), False),
    ],
)
def test_a_failure_replaces_no_figures_of_the_same_submission(earlier, worse):
    assert quality(reasons={CodePart.IMPLEMENTATION: "why"}).is_worse_than(earlier) is worse
    assert not quality(implementation=FIGURES).is_worse_than(earlier)


@pytest.mark.parametrize(
    ("record", "is_incomplete"),
    [
        (quality(implementation=FIGURES), False),
        (quality(implementation=FIGURES, incomplete={CodePart.TESTS: 1}), False),
        (quality(implementation=FIGURES, incomplete={CodePart.IMPLEMENTATION: 1}), True),
        (quality(reasons={CodePart.IMPLEMENTATION: NO_FILES}), False),
        (quality(reasons={CodePart.IMPLEMENTATION: NO_FILES}, incomplete={CodePart.IMPLEMENTATION: 1}), True),
        (quality(reasons={CodePart.IMPLEMENTATION: "why"}), True),
    ],
)
def test_figures_without_some_files_are_not_those_of_the_implementation(record, is_incomplete):
    assert record.is_incomplete is is_incomplete
    assert record.whole_implementation == (None if is_incomplete else record.implementation)


def test_a_large_record_is_not_read(tmp_path):
    quality(reasons={CodePart.TESTS: "x" * (4 << 20)}).save(tmp_path)

    with pytest.raises(ResultError, match="larger than 4194304 bytes"):
        QualityRecord.load(tmp_path)
