"""Files of other programs in the place of ours: which they are, and what is renamed."""

from __future__ import annotations

import json

import pytest

from slop_code.errors import UsageError
from slop_code.evaluation.report import RESULT_FILE
from slop_code.evaluation.result_files.foreign_files import (
    is_foreign_result,
    last_renamed,
    rename_or_refuse,
    renamed_path,
)
from slop_code.evaluation.result_files.replace_result import finish_replacement
from slop_code.evaluation.result_files.stored_evaluation import check_replaces_no_verdict
from tests.factories import result

OURS = json.dumps(result("+").model_dump(mode="json"))
THEIRS = json.dumps({"schema_version": 1, "problem_name": "a", "checkpoint_name": "b", "tests": {"b-Core": {}}})
EDITED = json.dumps({"problem_name": "a", "checkpoint_name": "b", "tests": [], "colour": 1})


@pytest.mark.parametrize(
    ("text", "beside", "foreign"),
    [
        (OURS, None, False),
        (EDITED, None, False),
        (OURS[:-9], ".scbench", False),
        (OURS[:-9], None, True),
        ("", ".scbench", False),
        ("", None, True),
        (THEIRS, None, True),
        (THEIRS, ".scbench", True),
        ('{"score": 1}', None, True),
        ('{"score": 1}', ".scbench", True),
        ('{"tests": [1]}', ".scbench", True),
        ("[1]", ".scbench", True),
        ("[" * 100_000, None, True),
    ],
)
def test_a_result_is_ours_by_its_content_or_by_what_lies_beside_it(tmp_path, text, beside, foreign):
    (tmp_path / RESULT_FILE).write_text(text)
    if beside:
        (tmp_path / beside).mkdir()
    assert is_foreign_result(tmp_path / RESULT_FILE) is foreign


def test_a_missing_result_and_a_folder_are_not_foreign_as_nothing_replaces_them(tmp_path):
    assert not is_foreign_result(tmp_path / RESULT_FILE)
    (tmp_path / RESULT_FILE).mkdir()
    assert not is_foreign_result(tmp_path / RESULT_FILE)


def test_a_link_to_a_file_elsewhere_is_foreign(tmp_path):
    (tmp_path / "elsewhere").write_text(OURS)
    (tmp_path / RESULT_FILE).symlink_to("elsewhere")
    assert is_foreign_result(tmp_path / RESULT_FILE)


def test_the_message_names_the_first_file_and_counts_the_others(tmp_path):
    rename_or_refuse([], "do this")
    with pytest.raises(UsageError, match=r"^a: written by another program, and would be replaced; do this$"):
        rename_or_refuse(["a"], "do this")
    with pytest.raises(UsageError, match=r"^a, and 1 more file: written"):
        rename_or_refuse(["a", "b"], "do this")
    with pytest.raises(UsageError, match=r"^a, and 2 more files: written"):
        rename_or_refuse(["a", "b", "c"], "do this")


def test_a_file_and_its_companion_get_the_same_number_and_no_name_is_taken(tmp_path):
    for name in (RESULT_FILE, "evaluation.scb.json", "summary.json", "result.json"):
        (tmp_path / name).write_text(name)
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation/report.json").write_text("report")
    rename_or_refuse([tmp_path / RESULT_FILE, tmp_path / "summary.json"], None)
    files = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {
        "evaluation.scb.json": "evaluation.scb.json",
        "evaluation.scb.2.json": RESULT_FILE,
        "evaluation.scb.2/report.json": "report",
        "summary.scb.json": "summary.json",
        "result.json": "result.json",
    }


def test_the_file_that_was_renamed_last_counts(tmp_path):
    path = tmp_path / "lines.jsonl"
    assert last_renamed(path) == renamed_path(path)
    for text in "abc":
        path.write_text(text)
        rename_or_refuse([path], None)
        assert last_renamed(path).read_text() == text


OWN_LEFTOVERS = [".evaluation.json.new", ".evaluation.json.copy", ".evaluation.json.0123456789abcdef"]
OTHERS = [".evaluation.json.swp", ".evaluation.json.0123", ".evaluation.json.new~", ".evaluation.json.0123456789ABCDEF"]


def test_only_temporary_files_of_ours_are_removed(tmp_path):
    for name in (*OWN_LEFTOVERS, *OTHERS):
        (tmp_path / name).write_text("unsaved")
    finish_replacement(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(OTHERS)


def test_a_check_for_a_verdict_changes_nothing_beside_a_foreign_result(tmp_path):
    for name in (RESULT_FILE, *OWN_LEFTOVERS):
        (tmp_path / name).write_text(THEIRS)
    check_replaces_no_verdict(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([RESULT_FILE, *OWN_LEFTOVERS])
