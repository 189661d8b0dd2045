"""Results that a command cannot replace: they stay, count, and are named."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from slop_code.execution.sandbox import REPORTS_DIR
from slop_code.runs.checkpoint_lines import read_lines
from slop_code.runs.run_layout import LINES_FILE, RESULT_FILE, SUMMARY_FILE
from slop_code.runs.summary import RunSummary
from tests.plugin_packages import install_package

pytestmark = pytest.mark.e2e


@pytest.fixture
def evaluated(world, monkeypatch, slop_code):
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
    assert slop_code("eval", discovered.folder, "--problems-dir", world.problems)[0] == 0
    return discovered.folder


def summaries(folder):
    return [(folder / name).read_text() for name in (LINES_FILE, SUMMARY_FILE)]


def test_a_run_remembers_where_its_problems_are(world, evaluated, slop_code):
    before = summaries(evaluated)
    status, out, err = slop_code("eval", evaluated)
    assert (status, out.splitlines()[-1]) == (0, "PASSED (all-cases): 2 of 2 checkpoints")
    assert f"problems as in the last evaluation: {world.problems};" in err
    assert summaries(evaluated) == before
    assert slop_code("merge", evaluated)[0] == slop_code("eval-problem", evaluated / "words")[0] == 0


def test_eval_problem_remembers_a_problem_with_another_name(world, evaluated, slop_code):
    (evaluated / "words").rename(world.folder / "renamed")
    assert slop_code("eval-problem", world.folder / "renamed", "-p", world.problems / "words")[0] == 0
    assert slop_code("eval-problem", world.folder / "renamed")[0] == 0


@pytest.mark.parametrize("given", ["option", "variable"])
def test_a_folder_that_the_user_names_is_used_and_no_other(world, evaluated, slop_code, monkeypatch, given):
    monkeypatch.setenv("SCBENCH_PROBLEMS_DIR", str(world.folder / ("empty" if given == "variable" else "problems")))
    option = ["--problems-dir", world.folder / "empty"] if given == "option" else []
    status, out, _ = slop_code("eval", evaluated, *option)
    assert status == 3
    assert f"no such problem in {world.folder / 'empty'}" in out
    monkeypatch.delenv("SCBENCH_PROBLEMS_DIR")
    assert slop_code("eval", evaluated)[0] == 0, "the folder that was remembered is not forgotten"


def test_a_run_whose_problem_is_gone_keeps_its_results(world, evaluated, slop_code):
    """Another problem with its name, where problems are looked up, does not take its place."""
    shutil.copytree(world.problems, "problems")
    Path("problems/words/tests/test_checkpoint_1.py").write_text("def test_other():\n    assert False\n")
    shutil.move(world.problems, world.folder / "elsewhere")
    before = (evaluated / "words/.slop-code/origin.json").read_text()
    status, out, _ = slop_code("eval", evaluated)
    reason = f"{world.problems}: the folder of problems of the last evaluation is gone; give --problems-dir"
    assert (status, before) == (3, (evaluated / "words/.slop-code/origin.json").read_text())
    assert out.splitlines()[-5:] == [
        "checkpoint words/checkpoint_1: PASSED (not looked at again), core 2/2, broke -, recovered -, 1.5 s",
        "checkpoint words/checkpoint_2: PASSED (not looked at again), core 2/2, broke 0, recovered 0, 1.5 s",
        f"not looked at again monday/words/checkpoint_1, monday/words/checkpoint_2: {reason}",
        "rates: strict 2 of 2 solved (mean 100%), isolated 2 of 2 solved (mean 100%), core 2 of 2 solved (mean 100%)",
        "NOT LOOKED AT AGAIN: 2 of 2 checkpoints passed (all-cases); 2 of 2 checkpoints keep their last result",
    ]
    summary = RunSummary.load(evaluated / SUMMARY_FILE)
    assert summary.totals.passed["all-cases"].count == summary.totals.checkpoints.not_looked_at_again == 2
    assert [item.reason for item in summary.not_looked_at_again] == [reason] * 2
    status, out, err = slop_code("eval-problem", evaluated / "words")
    assert (status, out, err) == (2, "", f"slop-code: {evaluated}/words: {reason} or -p\n")
    page = world.folder / "page.html"
    assert slop_code("report", evaluated, "-o", page)[0] == 0
    assert slop_code("eval", evaluated, "--problems-dir", world.folder / "elsewhere")[0] == 0
    assert {line.not_looked_at_again for line in read_lines(evaluated / LINES_FILE)} == {None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["eval", "monday", "--problems-dir", "nosuch"], "nosuch: there is no such folder of problems"),
        (["eval", "problems"], "problems: nothing to evaluate; expected <problem>/<checkpoint>/snapshot"),
        (["eval-problem", "problems/words"], "problems/words: nothing to evaluate; expected"),
        (
            ["eval", "monday/words"],
            "this is a problem of a run: evaluate it with `slop-code eval-problem monday/words`, or give",
        ),
    ],
)
def test_a_wrong_folder_is_wrong_use_and_nothing_is_written(
    world, evaluated, slop_code, monkeypatch, arguments, message
):
    def files():
        return {path: path.stat().st_mtime_ns for top in (evaluated, world.problems) for path in top.rglob("*")}

    monkeypatch.chdir(world.folder)
    before = files()
    status, out, err = slop_code(*arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert files() == before


def test_a_problem_folder_with_another_name_keeps_its_results(evaluated, slop_code):
    (evaluated / "words").rename(evaluated / "wrods")
    (evaluated / "wrods/.slop-code/origin.json").unlink()
    status, out, _ = slop_code("export", evaluated, "--format", "csv")
    assert (status, out.count("\n")) == (0, 5), "the lines of the summary name the earlier folder"
    status, out, _ = slop_code("eval", evaluated)
    assert status == 3
    assert out.splitlines()[-1].startswith("NOT LOOKED AT AGAIN: 2 of 2 checkpoints passed")
    lines = read_lines(evaluated / LINES_FILE)
    assert [(line.problem, line.evaluation) for line in lines] == [
        ("words", f"wrods/checkpoint_{number}/{RESULT_FILE}") for number in (1, 2)
    ]
    assert slop_code("export", evaluated, "--format", "csv")[0] == 0


def test_json_of_a_run_whose_problem_is_gone(world, evaluated, slop_code):
    shutil.move(world.problems, world.folder / "elsewhere")
    status, out, _ = slop_code("eval", evaluated, "--json")
    assert status == 3
    assert json.loads(out)["totals"]["checkpoints"]["not_looked_at_again"] == 2


EXECUTOR = """
    import signal
    from concurrent.futures import Future
    from pathlib import Path

    from slop_code.runs.checkpoint_lines import CheckpointFacts
    from slop_code.runs.jobs.job_records import JobResult
    from slop_code.runs.result_archive import read_archived_results

    FOLDER = Path(__file__).parent

    class Interrupting:
        \"\"\"Has a result for each job, and gets as many signals as the file says before the second.\"\"\"

        def __init__(self, slots, address, progress, cache):
            self.slots = 1

        def prepare(self, wanted):
            pass

        def submit(self, work):
            future = Future()
            signals = (FOLDER / "signals").read_text().split() if work.checkpoint == "checkpoint_2" else []
            for name in signals:
                signal.raise_signal(signal.Signals[name])
            if signals in ([], ["SIGINT"]):
                archive = (FOLDER / work.checkpoint).read_bytes()
                future.set_result(JobResult(CheckpointFacts.of(read_archived_results(archive)), archive))
            return future

        def stop(self, future):
            assert future.cancel()
            future.set_running_or_notify_cancel()

        def close(self):
            pass
"""


@pytest.fixture
def interrupting(world, evaluated, monkeypatch):
    """An executor with failed results for a run of three passed checkpoints."""
    world.problem(count=3)
    world.run(snapshots={"words": ["a", "b", "c"]})
    [discovered] = world.discover()
    site = install_package(
        world.folder / "site", "slop_code.executors", "interrupting = other_package:Interrupting", EXECUTOR
    )
    for submission in discovered.submissions:
        world.finish(submission, "++")
        (site / submission.checkpoint.name).write_bytes(world.archive(world.results(submission, "+-")))
    monkeypatch.delitem(sys.modules, "other_package", raising=False)
    monkeypatch.syspath_prepend(site)
    return site


@pytest.mark.parametrize(("signals", "done"), [("SIGINT", 2), ("SIGINT SIGINT", 1), ("SIGTERM", 1)])
def test_an_interrupted_overwrite_leaves_a_summary_of_what_is_there(evaluated, slop_code, interrupting, signals, done):
    (interrupting / "signals").write_text(signals)
    status, out, err = slop_code("eval", evaluated, "--overwrite", "--executor", "interrupting", "--no-live-progress")
    assert status == 130
    lines = read_lines(evaluated / LINES_FILE)
    assert [line.passed["all-cases"] for line in lines] == [number > done for number in (1, 2, 3)]
    again = "the evaluation was interrupted before this checkpoint was finished"
    assert [line.not_looked_at_again for line in lines] == [None if number <= done else again for number in (1, 2, 3)]
    assert RunSummary.load(evaluated / SUMMARY_FILE).totals.passed["all-cases"].count == 3 - done
    assert err.splitlines()[-1] == (
        f"· interrupted: {3 - done} of 3 submissions are left and keep any earlier result; the same command "
        "evaluates all 3 again; without --overwrite, it evaluates only those that have no up-to-date result"
    )
    assert bool(out) == (signals == "SIGINT")


def test_an_interrupted_run_goes_on_with_the_same_command(evaluated, slop_code, interrupting):
    for number in (1, 2, 3):
        (evaluated / f"words/checkpoint_{number}" / RESULT_FILE).unlink()
    (interrupting / "signals").write_text("SIGTERM")
    command = ["eval", evaluated, "--executor", "interrupting", "--no-live-progress"]
    status, _, err = slop_code(*command)
    assert (status, err.splitlines()[-1].endswith("keep any earlier result; the same command goes on")) == (130, True)
    assert [line.state for line in read_lines(evaluated / LINES_FILE)] == ["evaluated", *["not_evaluated"] * 2]
    (interrupting / "signals").write_text("")
    assert slop_code(*command)[0] == 1
    assert [line.state for line in read_lines(evaluated / LINES_FILE)] == ["evaluated"] * 3


@pytest.fixture(params=["damaged", "of another version", "a folder", "gone"])
def unreadable(request, evaluated):
    """The path of a result that cannot be read."""
    path = evaluated / "words/checkpoint_1" / RESULT_FILE
    document = path.read_text()
    path.unlink()
    if request.param == "damaged":
        path.write_text(document[:-9])
        (path.parent / REPORTS_DIR).mkdir(exist_ok=True)  # its evidence: the file counts as ours
    elif request.param == "of another version":
        path.write_text(document.replace('"schema_version": 1', '"schema_version": 2'))
    elif request.param == "a folder":
        path.mkdir()
    return path


@pytest.mark.parametrize("command", ["report -o {out}", "export --format csv", "export --format junit -o {out}"])
def test_a_result_that_cannot_be_read_is_named_with_exit_status_3(world, evaluated, slop_code, unreadable, command):
    name, *options = command.format(out=world.folder / "page.html").split()
    status, _, err = slop_code(name, evaluated, *options)
    assert status == 3
    assert err.startswith(f"· unreadable result: {unreadable}: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("side", ["base", "other"])
def test_compare_names_a_result_that_cannot_be_read(world, evaluated, slop_code, unreadable, side):
    other = world.folder / "other"
    shutil.copytree(evaluated, other)
    if unreadable.is_dir():
        (other / unreadable.relative_to(evaluated)).rmdir()
    world.finish(world.discover("other")[0].submissions[0], "++")
    sides = [evaluated, other] if side == "base" else [other, evaluated]
    status, out, err = slop_code("compare", *sides, "--json")
    assert status == 3
    assert f"· unreadable result: {unreadable}: " in err
    assert json.loads(out)["unreadable"][0].startswith(f"{unreadable}: ")


def test_eval_names_a_result_that_cannot_be_read(world, evaluated, slop_code, unreadable):
    exists = unreadable.exists()
    label = f"· unreadable result: {unreadable}: "
    status, _, err = slop_code("eval", evaluated, "--dry-run")
    assert (status, label in err) == (3 if exists else 0, exists)
    shutil.move(world.problems, world.folder / "elsewhere")
    status, out, err = slop_code("eval", evaluated)
    assert (status, label in err) == (3, exists)
    assert out.splitlines()[-1] == "NO VERDICT for 1 of 2 checkpoints; 1 passed (all-cases)"
    assert slop_code("merge", evaluated)[0] == 3


def test_a_folder_of_results_that_cannot_be_listed_is_named(evaluated, monkeypatch, slop_code):
    """Root may list every folder, so that the refusal of the system is put in."""
    listed = os.listdir

    def refuse(path):
        if str(path).endswith("checkpoint_1"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "listdir", refuse)
    status, _, err = slop_code("export", evaluated, "--format", "csv")
    assert status == 3
    reason = "cannot be read: Permission denied; let this user read it"
    assert f"· unreadable result: {evaluated / 'words/checkpoint_1'}: {reason}\n" in err
