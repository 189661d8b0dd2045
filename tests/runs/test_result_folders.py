"""Folders with snapshots of another name, and of a mirrored tree."""

import pytest

from slop_code.errors import UsageError
from slop_code.evaluation.result_files.origin import Origin
from slop_code.execution.cache import Cache
from slop_code.quality.measure_runs import find_snapshots
from slop_code.runs.discover import empty_run_reason
from slop_code.runs.folders.foreign_guard import has_only_results
from slop_code.runs.folders.result_folders import checkpoint_folders
from slop_code.runs.read_results import read_runs
from slop_code.runs.run_evaluation import RunSettings, open_runs
from slop_code.runs.run_layout import LINES_FILE, RESULT_FILE, SUMMARY_FILE
from slop_code.verification.inputs import snapshot_discrepancies


@pytest.fixture
def named(world):
    """A run of two checkpoints whose snapshots are called `final`."""
    world.problem(count=2)
    run = world.run(snapshots={"words": ["a", "b"]})
    for path in run.glob("*/*/snapshot"):
        path.rename(path.with_name("final"))
    return run


@pytest.fixture(params=["-o", "--snapshot-dir"])
def results(request, world, named):
    """Where the results are: in a mirrored tree, or in the run. The second checkpoint has none."""
    output = world.folder / "out" if request.param == "-o" else None
    runs = world.discover(snapshot_dir="final", output=output)
    with open_runs(runs, Cache(world.folder / "cache"), RunSettings()) as evaluation:
        evaluation.remember_origins(None)
    world.finish(runs[0].submissions[0])
    return output or named


def test_checkpoints_are_those_with_a_snapshot(results):
    assert checkpoint_folders(results) == [results / "words/checkpoint_1", results / "words/checkpoint_2"]


def test_a_checkpoint_without_a_result_is_known_by_its_snapshot(results):
    for name in (LINES_FILE, SUMMARY_FILE):
        assert not (results / name).exists()
    [run] = read_runs(results)
    lines = [(entry.line.problem, entry.line.checkpoint, entry.line.state) for entry in run.entries()]
    assert lines == [("words", "checkpoint_1", "evaluated"), ("words", "checkpoint_2", "not_evaluated")]


def test_the_code_of_the_run_is_measured_and_recorded_beside_the_results(named, results):
    found = [(target.snapshot, target.output) for target in find_snapshots([results])]
    names = ["words/checkpoint_1", "words/checkpoint_2"]
    assert found == [(named / name / "final", results / name) for name in names]
    assert [target.label for target in find_snapshots([results])] == [f"{results.name}/{name}" for name in names]


def test_a_snapshot_that_is_a_link_out_of_the_run_is_not_measured(world, named, results):
    for path in named.glob("words/*/final"):
        path.rename(world.folder / path.parent.name)
        path.symlink_to(world.folder / path.parent.name)
    if results == named:
        with pytest.raises(UsageError, match="there is no snapshot"):
            find_snapshots([results])


def test_verify_compares_the_snapshot_with_the_result(world, named, results):
    folder = results / "words/checkpoint_1"
    [first, _] = world.discover(snapshot_dir="final")[0].submissions
    stored = world.results(first)
    assert snapshot_discrepancies(stored, folder) == ([], [])
    (named / "words/checkpoint_1/final/main.py").write_text("changed")
    assert [found.kind for found in snapshot_discrepancies(stored, folder)[0]] == ["snapshot"]


def test_a_run_has_only_results_where_no_snapshot_has_the_given_name(world, named):
    for folder in named.glob("words/*"):
        (folder / RESULT_FILE).write_text("{}")
    (world.problems / "words").rename(world.folder / "gone")
    for name, only in (("final", False), ("snapshot", True)):
        [run] = world.discover(snapshot_dir=name)
        assert has_only_results(run) is only


def test_the_folder_of_a_problem_is_recognised_by_its_snapshots(world, named):
    [run] = world.discover("monday/words", snapshot_dir="final")
    assert empty_run_reason(run).endswith(f"or give the run {named}")
    assert "expected <problem>/<checkpoint>/final; this is a problem of a run" in empty_run_reason(run)
    [run] = world.discover("monday/words")
    assert "eval-problem" not in empty_run_reason(run)


def test_an_origin_of_another_kind_is_no_snapshot(tmp_path):
    (tmp_path / "run/words/checkpoint_1").mkdir(parents=True)
    Origin(problem=str(tmp_path)).keep(tmp_path / "run/words/checkpoint_1")
    assert checkpoint_folders(tmp_path / "run") == []
