"""Files of other programs in the place of ours: which they are, and what is renamed."""

from __future__ import annotations

import json

import pytest

from slop_code.errors import UsageError
from slop_code.evaluation.report import RESULT_FILE
from slop_code.evaluation.result_files.foreign_files import (
    LINES_FILE,
    SUMMARY_FILE,
    check_no_foreign,
    foreign_summary_files,
    is_foreign_result,
    set_aside,
)
from tests.factories import result

OURS = json.dumps(result("+").model_dump(mode="json"))
THEIRS = json.dumps({"schema_version": 1, "problem_name": "a", "checkpoint_name": "b", "tests": {"b-Core": {}}})
EDITED = json.dumps({"problem_name": "a", "checkpoint_name": "b", "tests": [], "colour": 1})


@pytest.mark.parametrize(
    ("text", "beside", "indexed", "foreign"),
    [
        (OURS, None, False, False),
        (EDITED, None, False, False),
        (OURS[:-9], ".scbench", False, False),
        (OURS[:-9], None, True, False),
        (OURS[:-9], None, False, True),
        ("", ".scbench", False, False),
        ("", None, False, True),
        (THEIRS, None, False, True),
        (THEIRS, ".scbench", True, True),
        ('{"score": 1}', None, False, True),
        ('{"tests": [1]}', None, False, True),
        ("[1]", None, False, True),
        ("[" * 100_000, None, False, True),
    ],
)
def test_a_result_is_ours_by_its_content_or_by_what_lies_beside_it(tmp_path, text, beside, indexed, foreign):
    (tmp_path / RESULT_FILE).write_text(text)
    if beside:
        (tmp_path / beside).mkdir()
    assert is_foreign_result(tmp_path / RESULT_FILE, indexed=indexed) is foreign


def test_a_missing_result_and_a_folder_are_not_foreign_as_nothing_replaces_them(tmp_path):
    assert not is_foreign_result(tmp_path / RESULT_FILE)
    (tmp_path / RESULT_FILE).mkdir()
    assert not is_foreign_result(tmp_path / RESULT_FILE)


def test_a_link_to_a_file_elsewhere_is_foreign(tmp_path):
    (tmp_path / "elsewhere").write_text(OURS)
    (tmp_path / RESULT_FILE).symlink_to("elsewhere")
    assert is_foreign_result(tmp_path / RESULT_FILE)


OWN_LINE = '{"run": "a", "problem": "b", "checkpoint": "c", "order": 1, "state": "evaluated"}\n'
FOREIGN_LINE = '{"problem": "b", "version": 1, "checkpoint": "c", "path": "x", "idx": 1, "strict_pass_rate": 1.0}\n'
OWN_SUMMARY, FOREIGN_SUMMARY = '{"slop_code": "1.0"}', '{"score": 3}'


@pytest.mark.parametrize(
    ("lines", "summary", "foreign"),
    [
        (None, None, []),
        (OWN_LINE, OWN_SUMMARY, []),
        (OWN_LINE, None, []),
        (FOREIGN_LINE, None, [LINES_FILE]),
        (FOREIGN_LINE, FOREIGN_SUMMARY, [LINES_FILE, SUMMARY_FILE]),
        (FOREIGN_LINE, OWN_SUMMARY, [LINES_FILE]),
        (OWN_LINE + FOREIGN_LINE, OWN_SUMMARY, [LINES_FILE]),
        (OWN_LINE[:-9], OWN_SUMMARY, []),
        ("", OWN_SUMMARY, []),
        (OWN_LINE, OWN_SUMMARY[:-9], []),
        (OWN_LINE[:-9], OWN_SUMMARY[:-9], [LINES_FILE, SUMMARY_FILE]),
        ("", None, [LINES_FILE]),
    ],
)
def test_a_damaged_summary_is_ours_where_the_other_file_is(tmp_path, lines, summary, foreign):
    for name, text in ((LINES_FILE, lines), (SUMMARY_FILE, summary)):
        if text is not None:
            (tmp_path / name).write_text(text)
    assert [path.name for path in foreign_summary_files(tmp_path)] == foreign


def test_the_message_names_the_first_file_and_counts_the_others(tmp_path):
    check_no_foreign([], "do this")
    with pytest.raises(UsageError, match=r"^a: written by another program, and would be replaced; do this$"):
        check_no_foreign(["a"], "do this")
    with pytest.raises(UsageError, match=r"^a, and 2 more files: written"):
        check_no_foreign(["a", "b", "c"], "do this")


def test_files_are_renamed_with_their_companions_and_no_name_is_taken(tmp_path):
    for name in (RESULT_FILE, "evaluation.scb.json", LINES_FILE, "result.json"):
        (tmp_path / name).write_text(name)
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation/report.json").write_text("report")
    set_aside([tmp_path / RESULT_FILE, tmp_path / LINES_FILE])
    files = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {
        "evaluation.scb.json": "evaluation.scb.json",
        "evaluation.scb.2.json": RESULT_FILE,
        "evaluation.scb/report.json": "report",
        "checkpoint_results.scb.jsonl": LINES_FILE,
        "result.scb.json": "result.json",
    }
