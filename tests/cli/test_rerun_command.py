"""`slop-code rerun`: wrong use."""

import shutil
from pathlib import Path

import pytest

from slop_code.cli.main import run

DATA = Path(__file__).parents[1] / "data" / "results"


@pytest.fixture
def stored(tmp_path, monkeypatch):
    shutil.copytree(DATA / "stored", tmp_path / "stored")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCBENCH_PROBLEMS_DIR", raising=False)
    return tmp_path / "stored"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["test_shouts_two", "-o", "out"], "-o cannot be used with TEST"),
        (["test_keeps"], "2 tests have 'test_keeps' in their names"),
        (["test_syas"], "no test has 'test_syas' in its name; did you mean test_says or "),
        (
            ["--snapshot", "stored", "-o", "stored/../stored"],
            "a stored result or a submission lies there; give another folder",
        ),
        ([], "stored/snapshot: no such folder; give --snapshot"),
        (["--snapshot", "stored"], "no problem 'words' in problems (no such folder): there are none; give the path of"),
        (["--snapshot", "stored", "-p", str(DATA / "words"), "-e", "nowhere.yaml"], "nowhere.yaml"),
        (["--snapshot", "stored", "-p", str(DATA / "words")], "lies inside the submission"),
        (["--snapshot", str(DATA / "words"), "-p", str(DATA / "words")], "words: this is the problem's folder, not a"),
    ],
    ids=["-o", "several", "none", "own", "snapshot", "problem", "environment", "inside", "own-folder"],
)
def test_wrong_options_are_usage_errors_and_write_nothing(stored, capsys, arguments, words):
    files = sorted(stored.rglob("*"))
    assert run(["rerun", "stored", *arguments]) == 2
    said = capsys.readouterr()
    assert (words in said.err, said.out) == (True, "")
    assert sorted(stored.rglob("*")) == files
