"""Folders of the wrong kind, and the command that takes each."""

import shlex

import pytest

from slop_code.errors import UsageError
from slop_code.quality.measure_runs import find_snapshots
from slop_code.runs.discover import empty_run_reason
from slop_code.runs.folders.folder_kind import SHOWN_RUNS, FolderKind, check_problem_of_run, folder_advice, kind_of
from slop_code.runs.folders.result_folders import result_at, runs_below
from slop_code.runs.run_layout import LAYOUT
from tests.run_world import world

__all__ = ["world"]


@pytest.fixture
def folder(world):
    """Runs, problems and other folders."""
    world.problem("words", 2)
    world.run("runs/monday")
    world.run("runs/tuesday")
    world.write({
        "runs/monday/config.yaml": "agent: {type: x}\n",
        "results/words/checkpoint_1/evaluation.json": "{}",
        "broken/config.yaml": "\t",
        "marked/config.yaml": "\ufeffcheckpoints: {}\n",
        "plain/main.py": "",
        "list/config.yaml": "- a\n",
        "deep/1/2/3/4/snapshot/main.py": "",
    })  # fmt: skip
    return world.folder


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("runs", FolderKind.RUNS),
        ("runs/monday", FolderKind.RUN),
        ("runs/monday/words", FolderKind.PROBLEM_OF_RUN),
        ("runs/monday/words/checkpoint_1", FolderKind.CHECKPOINT),
        ("results", None),
        ("results/words", None),
        ("marked", FolderKind.PROBLEM),
        ("problems", FolderKind.PROBLEMS),
        ("problems/words", FolderKind.PROBLEM),
        ("broken", None),
        ("list", None),
        ("plain", None),
        ("deep", None),
        ("gone", None),
    ],
)
def test_the_kind_of_a_folder(folder, path, kind):
    assert kind_of(folder / path) is kind


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("runs", "slop-code eval {}/*/"),
        ("runs/monday", "slop-code eval {}"),
        ("runs/monday/words", "slop-code eval-problem {}"),
        ("runs/monday/words/checkpoint_1", "slop-code eval-snapshot {}/snapshot -p words -c checkpoint_1"),
        ("problems", "slop-code eval RUN_DIR --problems-dir {}"),
        ("problems/words", "slop-code eval-snapshot DIR -p {} -c CHECKPOINT"),
        ("problems/words", "slop-code problems run {}"),
    ],
)
def test_each_kind_has_its_command(folder, path, command):
    assert f"`{command.format(folder / path)}`" in folder_advice(folder / path)


def test_another_name_of_snapshots_counts(folder, world):
    world.write({"other/words/checkpoint_1/code/main.py": ""})
    assert kind_of(folder / "other") is None
    assert kind_of(folder / "other", "code") is FolderKind.RUN


def test_the_runs_of_a_folder_are_listed(folder, world):
    assert folder_advice(folder / "runs").startswith("; this is a folder of runs (monday, tuesday): evaluate all")
    for number in range(SHOWN_RUNS + 3):
        world.run(f"many/{number}")
    assert "(0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 3 more)" in folder_advice(folder / "many")


def test_hostile_names_stay_on_one_line(folder, world):
    world.run("hostile/a\nb\x1b[2J")
    shown = folder_advice(folder / "hostile")
    assert "('a\\nb\\x1b[2J')" in shown
    assert "\n" not in shown
    assert "\x1b" not in shown
    name = "x; rm -rf"
    world.run(name)
    assert f"slop-code eval {shlex.quote(str(folder / name))}`" in folder_advice(folder / name)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("runs", "this is a folder of runs (monday, tuesday): evaluate all of them with `slop-code eval "),
        ("runs/monday/words", "this is a problem of a run: evaluate it with `slop-code eval-problem "),
        ("runs/monday/words/checkpoint_1", "this is a checkpoint of a run: evaluate it with `slop-code eval-snapshot "),
        (
            "problems/words",
            "this is a problem, with its tests: evaluate a submission with `slop-code eval-snapshot ",
        ),
        ("problems", "this is a folder of problems: evaluate a run with `slop-code eval RUN_DIR --problems-dir "),
    ],
)
def test_nothing_to_evaluate_names_the_command(world, folder, path, words):
    [run] = world.discover(path)
    assert (run.submissions, run.issues) == ((), ())
    reason = empty_run_reason(run)
    assert reason.startswith(f"{folder / path}: nothing to evaluate; expected <problem>/<checkpoint>/snapshot")
    assert words in reason


@pytest.mark.parametrize("path", ["plain", "results", "results/words"])
def test_a_folder_without_snapshots_is_not_sent_back_to_the_same_command(world, folder, path):
    [run] = world.discover(path)
    layout, one = "<problem>/<checkpoint>/snapshot", "`slop-code eval-snapshot DIR -p PROBLEM -c CHECKPOINT`"
    reason = f"{folder / path}: nothing to evaluate; expected {layout}; one submission is evaluated with {one}"
    assert empty_run_reason(run) == reason


def test_a_kind_that_the_command_takes_has_no_advice(folder):
    assert folder_advice(folder / "runs/monday", taken=FolderKind.RUN) == ""
    assert folder_advice(folder / "runs/monday", taken=FolderKind.RUNS) != ""


@pytest.mark.parametrize(
    ("path", "step"),
    [("runs", "; for a folder of runs: `slop-code metrics {}/*/`"), ("results", ""), ("problems/words", "")],
)
def test_metrics_names_no_command_that_evaluates(folder, path, step):
    with pytest.raises(UsageError) as caught:
        find_snapshots([folder / path])
    given = folder / path
    assert str(caught.value) == f"{given}: there is no snapshot; expected {LAYOUT}{step.format(given)}"


@pytest.mark.parametrize(
    "path", ["runs", "runs/monday", "runs/monday/words/checkpoint_1", "problems/words", "problems"]
)
def test_a_folder_without_checkpoints_is_not_a_problem_of_a_run(folder, path):
    with pytest.raises(UsageError, match="nothing to evaluate; expected <checkpoint>/snapshot; this is a "):
        check_problem_of_run(folder / path)


@pytest.mark.parametrize("path", ["runs/monday/words", "results/words", "plain"])
def test_a_problem_of_a_run_and_an_unknown_folder_are_not_refused(folder, path):
    check_problem_of_run(folder / path)


@pytest.mark.parametrize(
    ("path", "step"),
    [
        ("problems/words", "; this is a problem, with its tests: "),
        ("runs/monday/words", "; this is a problem of a run: evaluate it with `slop-code eval-problem "),
        ("runs/monday", "; this is a run: evaluate it with `slop-code eval "),
        ("runs", "; this is a folder of runs (monday, tuesday): "),
        ("plain", "; "),
    ],
)
@pytest.mark.parametrize("read", [runs_below, result_at])
def test_without_a_result_the_right_command_is_named(folder, path, step, read):
    with pytest.raises(UsageError) as caught:
        read(folder / path)
    assert str(caught.value).startswith(f"{folder / path}: no evaluation.json there")
    assert step in str(caught.value)


def test_a_run_in_place_of_a_result_is_shown_by_report(folder):
    with pytest.raises(
        UsageError, match=f"; `slop-code report {folder}/results` shows all of them; give one of them:\n"
    ):
        result_at(folder / "results")


def test_a_folder_of_evaluated_runs_in_place_of_a_result_lists_the_results(folder, world):
    world.write({"runs/monday/words/checkpoint_1/evaluation.json": "{}"})
    with pytest.raises(UsageError, match=r"shows all of them; give one of them:\n.*monday/words/checkpoint_1$"):
        result_at(folder / "runs")
