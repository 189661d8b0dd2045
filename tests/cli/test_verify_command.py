"""`slop-code verify` over stored results, in words and as JSON."""

import json
import shutil
from pathlib import Path

import pytest

from slop_code.cli.main import run
from slop_code.evaluation.report import CorrectnessResults
from slop_code.reporting.verification_lines import NEVER_CHECKED
from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine, write_lines
from slop_code.runs.run_layout import LINES_FILE

THERE = "words/checkpoint_2/evaluation.json"
DATA = Path(__file__).parents[1] / "data" / "results"


@pytest.fixture
def results(tmp_path, monkeypatch):
    """`runs/two` and `runs/three`, each with a summary and a result of the same problem; and the problem."""
    for name in ("two", "three"):
        shutil.copytree(DATA / "stored", tmp_path / "runs" / name / "words" / "checkpoint_2")
        summarise(tmp_path / "runs" / name)
    shutil.copytree(DATA / "words", tmp_path / "problems" / "words")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def summarise(run, **changes):
    """As an evaluation of the run does, and then edited."""
    stored = CorrectnessResults.load(run / THERE)
    facts = {**dict(CheckpointFacts.of(stored)), "problem": "words", "checkpoint": "checkpoint_2", **changes}
    write_lines(run / LINES_FILE, [CheckpointLine(**facts, run=run.name, order=2, evaluation=THERE)])


def edit(path):
    path.write_text(path.read_text().replace('"status": "failed"', '"status": "passed"', 1))


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["runs"], 2),
        (["runs/two", "runs/three"], 2),
        (["runs/three"], 1),
        (["runs/three/words/checkpoint_2"], 1),
        (["runs/three/words/checkpoint_2/evaluation.json"], 1),
        (["runs/three/words/checkpoint_2", "runs/two", "runs"], 2),
    ],
)
def test_unchanged_results_are_verified(results, capsys, arguments, count):
    assert run(["verify", *arguments]) == 0
    said = capsys.readouterr().out
    assert said.count(": verified: 8 tests, 4 groups, 7 policies from json-report\n") == count
    assert ("\n2 of 2 results verified\n" in said) == (count == 2)
    assert said.endswith(f"not checked: {NEVER_CHECKED}\n")


@pytest.mark.parametrize("option", [["--problems-dir", "problems"], ["-p", "problems/words"]])
def test_results_are_verified_against_the_problem(results, capsys, option):
    assert run(["verify", "runs", *option]) == 0
    said = capsys.readouterr().out
    assert said.count("7 policies from json-report, and the problem's tests and config\n") == 2
    assert run(["verify", "runs", "--json", *option]) == 0
    assert [outcome["with_problem"] for outcome in json.loads(capsys.readouterr().out)] == [True, True]


def test_an_edited_result_is_reported_as_different(results, capsys):
    edit(results / "two" / THERE)
    assert run(["verify", "runs"]) == 1
    said = capsys.readouterr().out.splitlines()
    name = "test_checkpoint_2.py::test_shouts_two"
    assert "runs/two/words/checkpoint_2/evaluation.json: DIFFERS from its raw reports: 1 finding" in said
    assert f"  {name} status: stored passed, the raw reports say failed" in said
    assert "1 of 2 results verified" in said
    assert run(["verify", "runs", "--json"]) == 1
    outcomes = json.loads(capsys.readouterr().out)
    assert [outcome["verified"] for outcome in outcomes] == [True, False]
    finding = {"kind": "status", "location": name, "stored": "passed", "raw": "failed"}
    assert (outcomes[1]["findings"], outcomes[1]["checkpoint"]) == ([finding], "checkpoint_2")
    assert NEVER_CHECKED in outcomes[1]["unchecked"]


def test_one_cannot_be_read_and_the_others_are_checked(results, capsys):
    (results / "two" / THERE).write_text("{")
    assert run(["verify", "runs"]) == 2
    said = capsys.readouterr().out
    assert "two/words/checkpoint_2/evaluation.json: cannot be verified: " in said
    assert "three/words/checkpoint_2/evaluation.json: verified: " in said
    shutil.rmtree(results / "three" / "words" / "checkpoint_2" / ".scbench")
    assert run(["verify", "runs", "--json"]) == 2
    outcomes = json.loads(capsys.readouterr().out)
    assert [outcome["verified"] for outcome in outcomes] == [None, None]
    assert "no raw reports in .scbench" in outcomes[0]["error"]


def test_a_difference_decides_the_exit_status_before_an_unreadable_result(results, capsys):
    (results / "two" / THERE).write_text("{")
    edit(results / "three" / THERE)
    assert run(["verify", "runs"]) == 1


def test_a_result_that_is_gone(results, capsys):
    (results / "two" / THERE).unlink()
    assert run(["verify", "runs"]) == 2
    said = capsys.readouterr().out.splitlines()
    gone = f"cannot be verified: runs/two/{THERE}: the result is gone; evaluate it again"
    assert f"runs/two/words/checkpoint_2: {gone}" in said
    assert "1 of 2 results verified" in said


def test_a_checkpoint_that_was_never_evaluated(results, capsys):
    (results / "three" / LINES_FILE).unlink()
    assert run(["verify", "runs/three", "--json"]) == 2
    outcomes = json.loads(capsys.readouterr().out)
    assert [(outcome["result"], outcome["verified"]) for outcome in outcomes] == [
        ("runs/three/words/checkpoint_2/evaluation.json", True),
        ("runs/three/words/checkpoint_1", None),
    ]
    assert "no result; evaluate it: slop-code eval" in outcomes[1]["error"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"checkpoint": "checkpoint_1"}, "checkpoint_name: stored checkpoint_2, {} checkpoint_1"),
        ({"problem": "deeds"}, "problem_name: stored words, {} deeds"),
        ({"state": "infrastructure_failure"}, "state: stored evaluated, {} infrastructure_failure"),
        ({"pass_counts": {"Core": 0}}, "pass_counts.Core: stored 1, {} 0"),
        ({"total_counts": {"Core": 2}}, "total_counts.Core: stored 1, {} 2"),
        ({"passed": {"all-cases": True}}, "passed.all-cases: stored false, {} true"),
    ],
    ids=["checkpoint", "problem", "state", "passes", "tests", "verdict"],
)
def test_a_summary_that_differs_from_its_result_is_a_finding(results, capsys, changes, words):
    summarise(results / "three", **changes)
    assert run(["verify", "runs/three"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith(": DIFFERS from its raw reports: 1 finding")
    assert said[1] == f"  {words.format('checkpoint_results.jsonl says')}"


def test_a_summary_that_cannot_be_read(results, capsys):
    (results / "three" / LINES_FILE).write_text("{\n")
    assert run(["verify", "runs/three"]) == 2
    said = capsys.readouterr().out
    assert "three/words/checkpoint_2/evaluation.json: verified: " in said
    assert "runs/three: cannot be verified: runs/three/checkpoint_results.jsonl:1: " in said


def test_another_problem_than_the_results(results, capsys):
    config = results.parent / "problems" / "words" / "config.yaml"
    config.write_text(config.read_text().replace("name: words", "name: deeds"))
    assert run(["verify", "runs/three", "-p", "problems/words"]) == 2
    words = "this is 'deeds', and the result is of 'words'; give the folder of 'words' with -p"
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere: there is no such file or folder"),
        (["problems"], "problems: no evaluation.json there, and no run that has one"),
    ],
)
def test_a_folder_without_results_cannot_be_verified(results, capsys, arguments, words):
    assert run(["verify", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_problem_that_is_not_there(results, capsys):
    assert run(["verify", "runs", "-p", "deeds"]) == 2
    assert "cannot be verified: no problem 'deeds'" in capsys.readouterr().out
