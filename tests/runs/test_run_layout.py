"""Layout of a run folder: the snapshot of a stored result."""

import shutil
from pathlib import Path

import pytest

from slop_code.evaluation.result_files.origin import Origin
from slop_code.runs.run_layout import stored_snapshot


@pytest.mark.parametrize(
    ("folders", "remembered", "expected"),
    [
        ([], None, "result/snapshot"),
        (["result/snapshot"], None, "result/snapshot"),
        (["run/snapshot"], "run/snapshot", "run/snapshot"),
        (["run/snapshot", "result/snapshot"], "run/snapshot", "run/snapshot"),
        (["result/snapshot", "result/final"], "result/final", "result/final"),
        (["result/snapshot", "result/final"], "moved/final", "result/final"),
        (["result/snapshot"], "moved/final", "result/snapshot"),
        ([], "moved/final", "result/snapshot"),
    ],
)
def test_the_snapshot_is_that_of_the_last_evaluation(tmp_path, folders, remembered, expected):
    for folder in ("result", *folders):
        (tmp_path / folder).mkdir(exist_ok=True, parents=True)
    if remembered:
        Origin(snapshot=str(tmp_path / remembered)).keep(tmp_path / "result")
    assert stored_snapshot(tmp_path / "result") == tmp_path / expected


def test_a_path_that_is_not_absolute_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("other").mkdir()
    Path("result").mkdir()
    Origin(snapshot="other").keep(Path("result"))
    assert stored_snapshot(Path("result")) == Path("result/snapshot")
    shutil.rmtree("result")
    assert stored_snapshot(Path("result")) == Path("result/snapshot")
