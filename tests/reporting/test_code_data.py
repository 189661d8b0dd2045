"""Code in the report's data: figures of each checkpoint, and the diff of checkpoints where tests broke."""

from __future__ import annotations

import json
import os

import pytest

from slop_code.evaluation.policy import PassPolicy
from slop_code.quality.quality_record import LeftOut
from slop_code.quality.snapshot_diff import MAX_FILE_BYTES
from slop_code.reporting.html import run_data
from slop_code.reporting.html.run_data import report_data
from slop_code.runs.read_results import read_runs
from tests.factories import case
from tests.reporting.html_runs import MEASURED, quality, store, store_snapshots, unpacked
from tests.scb_run import write_scb_run

PASSES, BREAKS = [case("a"), case("b")], [case("a", "failed"), case("b")]


@pytest.fixture
def read(tmp_path):
    """`read(checkpoints, snapshots)`: the code of each checkpoint, and the diffs by the number of the checkpoint."""

    def data(checkpoints, snapshots):
        run = store_snapshots(store(tmp_path / "run", checkpoints), snapshots)
        pages, parts = report_data(read_runs([run]), [PassPolicy.ALL_CASES])
        code = [checkpoint["code"] for checkpoint in pages["runs"][0]["problems"][0]["checkpoints"]]
        names = [name for name in parts if name.endswith("/diff")]
        return code, {int(name.split("/")[2]): unpacked(parts[name]) for name in names}

    return data


def test_figures_are_since_the_checkpoint_before(read):
    code, diffs = read([PASSES] * 3, [{"a": "1\n2\n"}, {"a": "1\n3\n4\n"}, {"a": "1\n3\n4\n"}])
    assert diffs == {}
    assert code == [
        {"lines": 2, "added": 2, "removed": 0, "churn": None, "incomplete": None},
        {"lines": 3, "added": 2, "removed": 1, "churn": 1.5, "incomplete": None},
        {"lines": 3, "added": 0, "removed": 0, "churn": 0.0, "incomplete": None},
    ]


def test_without_a_snapshot_nothing_is_counted(read):
    code, _ = read([PASSES] * 3, [{"a": "1\n"}, None, {"a": "1\n"}])
    assert code[1] is None
    assert code[2] == {"lines": 1, "added": None, "removed": None, "churn": None, "incomplete": None}


def test_a_snapshot_that_is_a_link_is_not_read(read, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/secret").write_text("key\n")
    (tmp_path / "run/words/checkpoint_1").mkdir(parents=True)
    os.symlink(tmp_path / "elsewhere", tmp_path / "run/words/checkpoint_1/snapshot")
    assert read([PASSES], [None])[0] == [None]


def test_the_second_checkpoint_alone_has_no_changes(tmp_path):
    run = store_snapshots(store(tmp_path / "run", [PASSES, PASSES]), [{"a": "1\n"}, {"a": "1\n2\n"}])
    document = json.loads((run / "words/checkpoint_2/evaluation.json").read_text())
    document["provenance"]["checkpoints"] = ["checkpoint_1", "checkpoint_2"]
    (run / "words/checkpoint_2/evaluation.json").write_text(json.dumps(document))
    data, _ = report_data(read_runs([run / "words/checkpoint_2/evaluation.json"]), [PassPolicy.ALL_CASES])
    code = [checkpoint["code"] for checkpoint in data["runs"][0]["problems"][0]["checkpoints"]]
    assert {"lines": 2, "added": None, "removed": None, "churn": None, "incomplete": None} in code
    assert not [each for each in code if each and each["added"] is not None]


def test_a_diff_is_stored_once_where_tests_broke(read):
    _, diffs = read(
        [PASSES, [case("a", "failed"), case("b", "failed")], BREAKS],
        [{"a": "1\n2\n"}, {"a": "1\n3\n"}, {"a": "4\n"}],
    )
    assert diffs == {
        1: {
            "files": [
                {
                    "name": "a", "kind": "changed", "added": 1, "removed": 1, "note": None,
                    "text": "@@ -1,2 +1,2 @@\n 1\n-2\n+3", "left_out": 0,
                }
            ],
            "left_out": 0,
            "unknown": 0,
        }
    }  # fmt: skip


@pytest.mark.parametrize(("size", "notes", "unknown"), [(0, [], 1), (1, ["too large to compare"], 0)])
def test_a_file_that_is_too_large_is_never_shown_as_unchanged(read, size, notes, unknown):
    large = {"a": "1" * (MAX_FILE_BYTES + 1)}
    _, diffs = read([PASSES, BREAKS], [large, {"a": "2" * (MAX_FILE_BYTES + 1 + size)}])
    assert [file["note"] for file in diffs[1]["files"]] == notes
    assert diffs[1]["unknown"] == unknown


def test_a_diff_is_since_the_last_verdict(read):
    code, diffs = read([PASSES, "killed", BREAKS], [{"a": "1\n"}, {"a": "2\n"}, {"a": "3\n"}])
    assert diffs[2]["files"][0]["text"] == "@@ -1 +1 @@\n-1\n+3"
    assert (code[2]["added"], code[2]["removed"]) == (1, 1)


def test_without_the_snapshot_of_the_last_verdict_there_is_no_diff(read):
    assert read([PASSES, BREAKS], [None, {"a": "1\n"}])[1] == {}


def test_text_of_a_diff_is_escaped_and_bounded(read):
    _, diffs = read(
        [PASSES, BREAKS], [{"a\x1b\n": ""}, {"a\x1b\n": "\x1b[2J\u202e\r\n" + "x" * 400 + "\n" + "y\n" * 900}]
    )
    (file,) = diffs[1]["files"]
    lines = file["text"].split("\n")
    assert file["name"] == "a\\x1b\\n"
    assert lines[:2] == ["@@ -0,0 +1,902 @@", "+\\x1b[2J\\u202e\\r"]
    assert lines[2] == f"+{'x' * 299} [... 101 characters]"
    assert (len(lines), file["left_out"]) == (400, 503)


def test_files_of_a_diff_are_bounded(read):
    many = {f"{n:03}": "1\n2\n3\n" * 150 for n in range(120)}
    _, diffs = read([PASSES, BREAKS], [{"a": "1\n"}, many])
    files = diffs[1]["files"]
    assert (len(files), diffs[1]["left_out"]) == (100, 21)
    assert sum(len(file["text"].split("\n")) for file in files if file["text"]) == 2_000
    assert files[-1]["left_out"] == 450


def test_all_diffs_are_bounded(read, monkeypatch):
    monkeypatch.setattr(run_data, "MAX_DIFFS_LENGTH", 2_500)
    snapshots = [{"a": "".join(f"{n * step}\n" for n in range(900))} for step in range(1, 9)]
    code, diffs = read([PASSES, BREAKS] * 4, snapshots)
    texts = [diff["files"][0]["text"] if diff["files"] else None for diff in diffs.values()]
    assert len(diffs) == 4
    assert texts[0]
    assert not texts[-1]
    assert all(diff["left_out"] or diff["files"][0]["left_out"] for diff in diffs.values())
    assert all(each["incomplete"] is None for each in code)


def test_comparisons_of_a_report_are_bounded_together(read, monkeypatch):
    monkeypatch.setattr(run_data, "MAX_HISTORY_STEPS", 2_000)
    swapped = ["x\ny\n" * 40, "y\nx\nx\n" * 30]
    code, _ = read([PASSES] * 6, [{"a": swapped[n % 2]} for n in range(6)])
    assert code[-1]["incomplete"] == "1 file compared roughly"
    assert (code[-1]["added"], code[-1]["removed"]) == (90, 80)


def test_files_that_are_too_large_are_said(read):
    code, _ = read([PASSES], [{"a": "1\n", "b": "x" * (1 << 20) + "\n"}])
    assert code == [{"lines": 1, "added": 1, "removed": 0, "churn": None, "incomplete": "1 file too large to count"}]


SHOWN = {"verbosity": 0.25, "erosion": 0.5, "cog_erosion": 0.0, "source_lines": 40, "max_complexity": None}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (quality(), {"implementation": SHOWN, "incomplete": None}),
        (quality(tests=MEASURED), {"implementation": SHOWN, "tests": SHOWN, "incomplete": None}),
        (quality(left_out=[LeftOut(reason="a link", files=2, first=[])]),
         {"implementation": SHOWN, "incomplete": "2 source files not measured: a link"}),
        (quality(implementation=None, reasons={"implementation": "it ended with 1"}),
         {"incomplete": "no figures of the implementation: it ended with 1"}),
        (quality(submission="another"), {"incomplete": "quality.json is of another submission"}),
        ("{", {"incomplete": "quality.json cannot be read"}),
        (None, None),
    ],
)  # fmt: skip
def test_quality_is_shown_where_it_is_recorded(read, tmp_path, record, expected):
    folder = tmp_path / "run/words/checkpoint_1"
    folder.mkdir(parents=True)
    if isinstance(record, str):
        (folder / "quality.json").write_text(record)
    elif record is not None:
        record.save(folder)
    assert read([PASSES], [None])[0] == [expected]


def test_quality_of_a_run_of_slopcodebench_is_shown(tmp_path):
    """Its results have no digest of the submission."""
    run = tmp_path / "theirs"
    write_scb_run(run)
    quality().save(run / "calendar/checkpoint_1")
    data, _ = report_data(read_runs([run]), [PassPolicy.ALL_CASES])
    code = data["runs"][0]["problems"][0]["checkpoints"][0]["code"]
    assert (code["implementation"], code["incomplete"]) == (SHOWN, None)


def test_snapshots_of_other_problems_are_not_compared(tmp_path):
    run = tmp_path / "run"
    for problem in ("larder", "words"):
        store_snapshots(store(run, [PASSES, PASSES], problem), [{"a": f"{problem}\n"}] * 2, problem)
    data, _ = report_data(read_runs([run]), [PassPolicy.ALL_CASES])
    added = [[c["code"]["added"] for c in problem["checkpoints"]] for problem in data["runs"][0]["problems"]]
    assert added == [[1, 0], [1, 0]]
