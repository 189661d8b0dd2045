"""Runs that are regraded after their problem changed: for real, killed in the middle, and without running anything."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from textwrap import indent

import pytest

from slop_code.evaluation import CorrectnessResults
from slop_code.execution.cache import Cache
from tests.command import SLOP_CODE, slop_code
from tests.e2e.conftest import PROBLEMS
from tests.factories import statuses

STAYS_IF_TOLD = 'if "stay" in sys.argv:\n'


@pytest.fixture
def problems(tmp_path):
    """A copy of the problem, to be edited."""
    shutil.copytree(PROBLEMS / "sums", tmp_path / "problems/sums")
    return tmp_path / "problems"


@pytest.fixture
def slop(problems, monkeypatch):
    """`slop(cache, "regrade", run)`: its exit status, and what it printed."""

    def call(cache, command, *words):
        monkeypatch.setenv("SCBENCH_CACHE_DIR", str(cache.root))
        done = slop_code(command, *words, "--problems-dir", problems, "--json")
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr

    return call


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def bytes_in(run):
    """All results and their evidence, by their paths in the run."""
    names = [path for path in run.glob("sums/checkpoint_*/**/*") if "snapshot" not in path.parts and path.is_file()]
    return {str(path.relative_to(run)): path.read_bytes() for path in names}


def changes(document, checkpoint):
    found = {item["checkpoint"]: item for run in document["runs"] for item in run["checkpoints"]}
    return found[checkpoint]["outcome"], {test["test"]: test for test in found[checkpoint]["tests"]}


def test_changed_new_and_gone_tests_are_named_and_the_earlier_results_are_kept(sums, fresh_cache, slop, problems):
    cache, run = fresh_cache("cache"), sums.run("run")
    assert slop(cache, "eval", run)[0] == 0
    before, summary = bytes_in(run), (run / "summary.json").read_bytes()
    folder = problems / "sums/tests"
    edit(folder / "test_checkpoint_2.py", '"-1\\n"', '"-2\\n"')
    edit(folder / "test_checkpoint_3.py", "def test_multiplies", "def test_times")
    status, plan = slop(cache, "regrade", run, "--dry-run")
    outcomes = [item["outcome"] for item in plan["checkpoints"]]
    assert (status, outcomes) == (0, ["unchanged", "evaluated again", "evaluated again"])
    assert bytes_in(run) == before

    status, document = slop(cache, "regrade", run, "--label", "v1")
    assert status == 1
    assert changes(document, "checkpoint_1") == ("unchanged", {})
    outcome, tests = changes(document, "checkpoint_3")
    assert outcome == "evaluated again"
    assert {name: test["kinds"] for name, test in tests.items()} == {
        "test_checkpoint_2.py::test_subtracts": ["changed", "status"],
        "test_checkpoint_3.py::test_multiplies": ["gone"],
        "test_checkpoint_3.py::test_times": ["new"],
    }
    subtracts = tests["test_checkpoint_2.py::test_subtracts"]
    assert (subtracts["why"], subtracts["old"]["status"], subtracts["new"]["status"]) == (
        ["its code changed"],
        "passed",
        "failed",
    )
    earlier = run / ".slop-code/earlier/v1"
    assert bytes_in(earlier) == before
    assert (earlier / "summary.json").read_bytes() == summary
    assert json.loads((earlier / "regrade.json").read_text())["finished"]
    compared = slop_code("compare", earlier, run)
    assert "sums/checkpoint_1: PASSED -> PASSED\n" in compared.stdout
    assert "sums/checkpoint_3: PASSED -> NOT PASSED" in compared.stdout
    assert "regraded: label v1, 4 tests changed in 2 checkpoints" in report_of(run)

    edit(folder / "test_checkpoint_2.py", '"-2\\n"', '"-1\\n"')
    status, message = slop(cache, "regrade", run, "--label", "v1")
    assert (status, "label v1 has another result; give another with --label" in message) == (2, True)
    assert bytes_in(earlier) == before


def report_of(run):
    from slop_code.reporting.html.run_data import report_data
    from slop_code.runs.read_results import read_runs

    return json.dumps(report_data(read_runs([run]), [])[0])


def test_changed_groups_are_graded_from_the_evidence_with_a_cache_in_which_nothing_can_run(
    sums, fresh_cache, slop, problems, tmp_path
):
    cache, run = fresh_cache("cache"), sums.run("run", mains={"checkpoint_1": sums.main("a")})
    edit(problems / "sums/tests/test_checkpoint_1.py", "def test_adds", "@pytest.mark.sum\ndef test_adds")
    config = problems / "sums/config.yaml"
    marker = "markers: {NAME: {group: GROUP, description: adds}}\n"
    config.write_text(config.read_text() + marker.replace("NAME", "sum").replace("GROUP", "Functionality"))
    slop(cache, "eval", run)
    before = bytes_in(run)

    nowhere = Cache(tmp_path / "empty")
    edit(config, "{sum: {group: Functionality", "{total: {group: Error")
    status, document = slop(nowhere, "regrade", run, "--label", "v1")
    assert status == 3  # the other checkpoints have no snapshot
    outcome, tests = changes(document, "checkpoint_1")
    assert outcome == "graded again"
    assert {name: test["kinds"] for name, test in tests.items()} == {"test_checkpoint_1.py::test_adds": ["group"]}
    stored = CorrectnessResults.load(run / "sums/checkpoint_1/evaluation.json")
    assert stored.total_counts == {"Core": 1, "Functionality": 0, "Error": 1, "Regression": 0}
    after = bytes_in(run)
    names = {"sums/checkpoint_1/evaluation.json", "sums/checkpoint_1/.scbench/inputs.json"}
    assert {name for name in before if before[name] != after[name]} == names
    assert bytes_in(run / ".slop-code/earlier/v1") == before
    verified = slop_code("verify", run / "sums/checkpoint_1", "-p", problems / "sums")
    assert verified.returncode == 0, verified.stdout
    status, plan = slop(nowhere, "eval", run, "--dry-run")
    assert plan["up_to_date"] == ["run/sums/checkpoint_1"]
    assert plan["jobs"] == []
    assert [(folder / "tools").exists() for folder in (cache.root, nowhere.root)] == [True, False]


@pytest.mark.long
def test_a_failure_leaves_the_earlier_result_in_its_place(sums, fresh_cache, slop, problems):
    cache, run = fresh_cache("cache"), sums.run("run")
    slop(cache, "eval", run)
    before = CorrectnessResults.load(run / "sums/checkpoint_1/evaluation.json")
    (problems / "sums/tests/test_checkpoint_1.py").write_text("def (\n")
    status, document = slop(cache, "regrade", run)
    assert status == 3
    assert changes(document, "checkpoint_1") == ("not regraded", {})
    assert CorrectnessResults.load(run / "sums/checkpoint_1/evaluation.json") == before


@pytest.mark.long
def test_a_regrade_that_was_killed_loses_nothing_and_is_completed(sums, fresh_cache, slop, problems, staying):
    """The new tests make one submission stay, so that the regrade is killed between two checkpoints."""
    cache = fresh_cache("cache")
    first = STAYS_IF_TOLD + indent(staying.first, "    ")
    run = sums.run("run", mains={one: sums.main(one, first=first) for one in sums.checkpoints})
    assert slop(cache, "eval", run)[0] == 0
    before = bytes_in(run)
    edit(problems / "sums/tests/test_checkpoint_1.py", '"2", "+", "3").stdout == "5', '"2", "+", "4").stdout == "6')
    with (problems / "sums/tests/test_checkpoint_3.py").open("a") as file:
        file.write('\n\ndef test_stays(run):\n    assert run("2", "+", "stay").returncode == 2\n')
    argv = [SLOP_CODE, "regrade", run, "--problems-dir", problems, "-j", "1", "--no-live-progress"]
    environment = {**os.environ, "SCBENCH_CACHE_DIR": str(cache.root)}
    with subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL) as killed:
        staying.arrived(1)
        killed.send_signal(signal.SIGKILL)
    (label,) = (run / ".slop-code/earlier").iterdir()
    assert bytes_in(label) == before
    assert not json.loads((label / "regrade.json").read_text())["finished"]
    assert bytes_in(run).keys() >= before.keys()

    assert staying.alive() == []
    with subprocess.Popen([*argv, "--json"], env=environment, stdout=subprocess.PIPE, text=True) as again:
        staying.let_go(*staying.arrived(1))
        document = json.loads(again.communicate()[0])
    assert again.returncode == 1  # a test is new
    assert list((run / ".slop-code/earlier").iterdir()) == [label]
    assert bytes_in(label) == before
    assert json.loads((label / "regrade.json").read_text())["finished"]
    for checkpoint in sums.checkpoints:
        outcome, tests = changes(document, checkpoint)
        assert outcome == "evaluated again"
        assert tests["test_checkpoint_1.py::test_adds"]["kinds"] == ["changed"]
        now = CorrectnessResults.load(run / "sums" / checkpoint / "evaluation.json")
        assert set(statuses(now).values()) == {"passed"}
    assert tests["test_checkpoint_3.py::test_stays"]["kinds"] == ["new"]
