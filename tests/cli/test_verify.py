"""`slop-code verify` over stored results, in words and as JSON."""

import json
import shutil
import signal
from pathlib import Path

import pytest

from slop_code.cli.main import run

DATA = Path(__file__).parents[1] / "data" / "results"


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A run folder `run` with two results of one problem, and the problem."""
    for number in (2, 3):
        shutil.copytree(DATA / f"schema-{number}", tmp_path / "run" / "words" / f"checkpoint_{number}")
    shutil.copytree(DATA / "words", tmp_path / "problems" / "words")
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    yield tmp_path / "run" / "words"
    signal.signal(signal.SIGTERM, before)


def edit(path):
    path.write_text(path.read_text().replace('"status": "failed"', '"status": "passed"', 1))


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["run"], 2),
        (["run/words"], 2),
        (["run/words/checkpoint_3"], 1),
        (["run/words/checkpoint_3/evaluation.json"], 1),
        (["run/words/checkpoint_3", "run/words/checkpoint_2", "run"], 2),
        (["."], 2),
        (["run", "--problems-dir", "problems"], 2),
        (["run", "-p", "problems/words"], 2),
    ],
)
def test_all_agree(results, capsys, arguments, count):
    assert run(["verify", *arguments]) == 0
    said = capsys.readouterr().out
    assert said.count(": verified: 8 tests, 4 groups, 7 policies from json-report\n") == count


def test_one_differs(results, capsys):
    edit(results / "checkpoint_3" / "evaluation.json")
    assert run(["verify", "run"]) == 1
    said = capsys.readouterr().out.splitlines()
    name = "test_checkpoint_2.py::test_shouts_two"
    assert "run/words/checkpoint_3/evaluation.json: DIFFERS from its raw reports: 1 finding" in said
    assert f"  {name} status: stored passed, the raw reports say failed" in said
    assert run(["verify", "run", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [one["verified"] for one in told] == [True, False]
    finding = {"kind": "status", "place": name, "stored": "passed", "raw": "failed"}
    assert (told[1]["findings"], told[1]["checkpoint"]) == ([finding], "checkpoint_2")


def test_one_cannot_be_read_and_the_others_are_checked(results, capsys):
    (results / "checkpoint_2" / "evaluation.json").write_text("{")
    assert run(["verify", "run"]) == 2
    said = capsys.readouterr().out
    assert "checkpoint_2/evaluation.json: cannot be verified: " in said
    assert "checkpoint_3/evaluation.json: verified: " in said
    shutil.rmtree(results / "checkpoint_3" / ".scbench")
    assert run(["verify", "run", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert [one["verified"] for one in told] == [None, None]
    assert "no raw reports in .scbench" in told[1]["error"]


def test_a_difference_outweighs_what_cannot_be_read(results, capsys):
    (results / "checkpoint_2" / "evaluation.json").write_text("{")
    edit(results / "checkpoint_3" / "evaluation.json")
    assert run(["verify", "run"]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere: there is no such file or folder"),
        (["problems"], "problems: no evaluation.json there, and no run that has one"),
    ],
)
def test_nothing_to_verify(results, capsys, arguments, words):
    assert run(["verify", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_problem_that_is_not_there(results, capsys):
    assert run(["verify", "run", "-p", "deeds"]) == 2
    assert "cannot be verified: no problem 'deeds'" in capsys.readouterr().out
