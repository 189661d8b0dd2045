"""Results that a command cannot replace: they stay, count, and are named."""

from __future__ import annotations

import json
import shutil

import pytest

from slop_code.cli.main import run
from slop_code.runs.checkpoint_lines import read_lines
from slop_code.runs.run_layout import LINES_FILE, RESULT_FILE, SUMMARY_FILE
from slop_code.runs.summary import RunSummary


@pytest.fixture
def call(capsys):
    def call(*arguments):
        status = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return status, printed.out, printed.err

    return call


@pytest.fixture
def evaluated(world, monkeypatch, call):
    """A run with two passed checkpoints, evaluated with --problems-dir; the next command is in an empty folder."""
    world.problem(count=2)
    world.run(snapshots={"words": ["a", "b"]})
    [discovered] = world.discover()
    for submission in discovered.submissions:
        world.finish(submission, "++")
    (world.folder / "empty").mkdir()
    monkeypatch.chdir(world.folder / "empty")
    monkeypatch.delenv("SCBENCH_PROBLEMS_DIR", raising=False)
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(world.folder / "cache"))
    assert call("eval", discovered.folder, "--problems-dir", world.problems)[0] == 0
    return discovered.folder


def summaries(folder):
    return [(folder / name).read_text() for name in (LINES_FILE, SUMMARY_FILE)]


def test_a_run_remembers_where_its_problems_are(world, evaluated, call):
    before = summaries(evaluated)
    status, out, err = call("eval", evaluated)
    assert (status, out.splitlines()[-1]) == (0, "PASSED (all-cases): 2 of 2 checkpoints")
    assert f"problems as in the last evaluation: {world.problems};" in err
    assert summaries(evaluated) == before
    assert call("merge", evaluated)[0] == call("eval-problem", evaluated / "words")[0] == 0


def test_eval_problem_remembers_a_problem_with_another_name(world, evaluated, call):
    (evaluated / "words").rename(world.folder / "renamed")
    assert call("eval-problem", world.folder / "renamed", "-p", world.problems / "words")[0] == 0
    assert call("eval-problem", world.folder / "renamed")[0] == 0


@pytest.mark.parametrize("given", ["option", "variable"])
def test_a_folder_that_the_user_names_is_used_and_no_other(world, evaluated, call, monkeypatch, given):
    monkeypatch.setenv("SCBENCH_PROBLEMS_DIR", str(world.folder / ("empty" if given == "variable" else "problems")))
    option = ["--problems-dir", world.folder / "empty"] if given == "option" else []
    status, out, _ = call("eval", evaluated, *option)
    assert status == 3
    assert f"no such problem in {world.folder / 'empty'}" in out
    monkeypatch.delenv("SCBENCH_PROBLEMS_DIR")
    assert call("eval", evaluated)[0] == 0, "the folder that was remembered is not forgotten"


def test_a_run_whose_problem_is_gone_keeps_its_results(world, evaluated, call):
    shutil.move(world.problems, world.folder / "elsewhere")
    status, out, _ = call("eval", evaluated)
    reason = "problems: there is no such folder of problems; give --problems-dir"
    label = "monday/words/checkpoint"
    assert status == 3
    assert out.splitlines()[-5:] == [
        "checkpoint words/checkpoint_1: PASSED (not looked at again), core 2/2, broke -, repaired -, 1.5 s",
        "checkpoint words/checkpoint_2: PASSED (not looked at again), core 2/2, broke 0, repaired 0, 1.5 s",
        f"not looked at again {label}_1: {reason}",
        f"not looked at again {label}_2: {reason}",
        "NOT LOOKED AT AGAIN: 2 of 2 checkpoints passed (all-cases); 2 of them keep their last result",
    ]
    summary = RunSummary.load(evaluated / SUMMARY_FILE)
    assert summary.totals.passed["all-cases"].count == summary.totals.checkpoints.not_looked_at_again == 2
    assert [item.reason for item in summary.not_looked_at_again] == [reason] * 2
    page = world.folder / "page.html"
    assert call("report", evaluated, "-o", page)[0] == 0
    assert call("eval", evaluated, "--problems-dir", world.folder / "elsewhere")[0] == 0
    assert {line.not_looked_at_again for line in read_lines(evaluated / LINES_FILE)} == {None}


def test_a_problem_folder_with_another_name_keeps_its_results(evaluated, call):
    (evaluated / "words").rename(evaluated / "wrods")
    (evaluated / "wrods/.slop-code/origin.json").unlink()
    status, out, _ = call("export", evaluated, "--format", "csv")
    assert (status, out.count("\n")) == (0, 5), "the lines of the summary name the earlier folder"
    status, out, _ = call("eval", evaluated)
    assert status == 3
    assert out.splitlines()[-1].startswith("NOT LOOKED AT AGAIN: 2 of 2 checkpoints passed")
    lines = read_lines(evaluated / LINES_FILE)
    assert [(line.problem, line.evaluation) for line in lines] == [
        ("words", f"wrods/checkpoint_{number}/{RESULT_FILE}") for number in (1, 2)
    ]
    assert call("export", evaluated, "--format", "csv")[0] == 0


def test_json_of_a_run_whose_problem_is_gone(world, evaluated, call):
    shutil.move(world.problems, world.folder / "elsewhere")
    status, out, _ = call("eval", evaluated, "--json")
    assert status == 3
    assert json.loads(out)["totals"]["checkpoints"]["not_looked_at_again"] == 2
