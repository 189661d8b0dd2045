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
        (["result/snapshot", "run/snapshot"], "run/..", "result/snapshot"),
    ],
)
def test_the_snapshot_is_that_of_the_last_evaluation(tmp_path, folders, remembered, expected):
    def path(name):
        """In a result, in the run that it is of, or in the run before it was moved."""
        top, _, rest = name.partition("/")
        return tmp_path / top / "words/checkpoint_1" / rest

    for folder in ("result", *folders):
        path(folder).mkdir(exist_ok=True, parents=True)
    if remembered:
        Origin(snapshot=str(path(remembered))).keep(path("result"))
    assert stored_snapshot(path("result")) == path(expected)


def test_a_snapshot_of_another_checkpoint_is_not_followed(tmp_path):
    result, other = tmp_path / "result/words/checkpoint_1", tmp_path / "private/letters/snapshot"
    for folder in (result, other):
        folder.mkdir(parents=True)
    Origin(snapshot=str(other)).keep(result)
    assert stored_snapshot(result) == result / "snapshot"


def test_a_path_that_is_not_absolute_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("other").mkdir()
    Path("result").mkdir()
    Origin(snapshot="other").keep(Path("result"))
    assert stored_snapshot(Path("result")) == Path("result/snapshot")
    shutil.rmtree("result")
    assert stored_snapshot(Path("result")) == Path("result/snapshot")
