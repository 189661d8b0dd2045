"""`eval --follow` as a user meets it: options that do not fit, and results that are there already."""

from __future__ import annotations

import itertools
import json
import shutil

import pytest

from slop_code.cli.eval import follow_action
from slop_code.cli.main import parse, run
from slop_code.errors import UsageError
from slop_code.runs.run_layout import SUMMARY_FILE

pytestmark = pytest.mark.e2e


@pytest.fixture
def followed(world, monkeypatch):
    """A run that has ended, with two complete and evaluated snapshots: the second fails a test."""
    world.problem(count=2)
    folder = world.run(snapshots={"words": ["a", "b"]})
    for submission, tests in zip(world.discover()[0].submissions, ("++", "+-"), strict=True):
        world.finish(submission, tests)
        (submission.output / "snapshot.done").touch()
    (folder / "run.done").touch()
    monkeypatch.chdir(world.folder)
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(world.folder / "cache"))
    monkeypatch.setenv("SCBENCH_PROBLEMS_DIR", "problems")
    return folder


@pytest.fixture
def follow(followed, monkeypatch):
    """`follow("-q eval monday")`: its exit status, with a clock by which every snapshot settles until the next look."""
    monkeypatch.setattr(follow_action, "POLL_S", 0)
    return lambda words: follow_action.follow(parse(f"{words} --follow".split()), itertools.count(step=10).__next__)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["monday", "--stop-at", "core"], "--stop-at needs --follow"),
        (["monday", "--report", "r.html", "--dry-run"], "--report cannot be used with --dry-run or a selection"),
        (["monday", "--report", "r.html", "-k", "x"], "--report cannot be used with --dry-run or a selection"),
        (["monday", "--report", "monday"], "a folder; give the name of a file with --report"),
        (
            ["monday", "--report", "problems/words/tests/test_checkpoint_1.py"],
            "no page that slop-code wrote; remove it, or use",
        ),
        (["monday", "tuesday", "--follow"], "--follow takes one RUN_DIR"),
        (["monday", "--follow", "--dry-run"], "--follow cannot be used with --dry-run"),
        (["monday", "--follow", "--shard", "1/2"], "--follow cannot be used with"),
        (["monday", "--follow", "--overwrite"], "--follow cannot be used with"),
        (["monday", "--follow", "-k", "x"], "--follow cannot be used with"),
        (["monday", "--follow", "--replace"], "give -o OUT"),
        (["monday", "--follow", "--executor", "ray"], "leave out --executor ray"),
        (["monday", "--follow", "--settle", "0"], "expected a whole number from 1 to 3600"),
        (["monday", "--follow", "--stop-at", "nonsense"], "nonsense"),
        (["monday", "--follow", "--report", "problems"], "a folder"),
        (["nothing", "--follow", "--problems-dir", "gone"], "there is no such folder of problems"),
        (["nothing", "--follow", "-e", "gone.yaml"], "gone.yaml"),
        (["monday", "--follow", "--problem", "gone"], "no problem 'gone' in monday"),
        (["cache", "--follow"], "nothing to evaluate"),
    ],
)
def test_wrong_use_is_refused_before_anything_is_written(followed, capsys, arguments, message):
    (followed.parent / "cache").mkdir()
    (followed.parent / "cache/run.done").touch()
    assert run(["eval", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (followed / SUMMARY_FILE).exists()


@pytest.mark.parametrize(
    ("arguments", "status", "stopped"),
    [("", 1, False), ("--stop-at any", 1, False), ("--stop-at strict", 4, True)],
)
def test_a_run_that_has_ended_is_concluded(followed, follow, capsys, arguments, status, stopped):
    assert follow(f"eval monday --json {arguments}") == status
    summary = json.loads(capsys.readouterr().out)
    assert summary["totals"]["checkpoints"]["evaluated"] == 2
    assert json.loads((followed / SUMMARY_FILE).read_text()) == summary
    assert (followed / "stop.json").exists() == stopped
    if stopped:
        assert json.loads((followed / "stop.json").read_text())["checkpoint"] == "checkpoint_2"


def test_with_an_output_nothing_is_written_into_the_run(followed, follow, capsys):
    shutil.copytree(followed, "out", ignore=shutil.ignore_patterns("snapshot", "*.done"))
    for path in followed.rglob("evaluation.json"):
        path.unlink()
    before = sorted(followed.rglob("*"))
    assert follow("-q eval monday -o out --stop-at strict --report report.html") == 4, capsys.readouterr().err
    assert sorted(followed.rglob("*")) == before
    assert json.loads((followed.parent / "out/stop.json").read_text())["checkpoint"] == "checkpoint_2"
    assert (followed.parent / "out" / SUMMARY_FILE).exists()
    assert (followed.parent / "report.html").exists()
    assert "waiting" not in capsys.readouterr().err


def test_without_stop_at_its_file_is_left_alone(followed, follow):
    (followed / "stop.json").write_text("of somebody else")
    assert follow("eval monday") == 1
    assert (followed / "stop.json").read_text() == "of somebody else"
    with pytest.raises(UsageError, match="not written by slop-code"):
        follow("eval monday --stop-at any")


@pytest.mark.parametrize("arguments", ["", "--stop-at any"])
def test_the_file_of_an_earlier_command_is_removed_at_the_start(followed, follow, arguments):
    assert follow("eval monday --stop-at strict") == 4
    assert follow(f"eval monday {arguments}") == 1
    assert not (followed / "stop.json").exists()


@pytest.mark.parametrize("output", ["monday", "monday/sub"])
def test_a_refused_output_removes_nothing(followed, follow, output):
    assert follow("eval monday --stop-at strict") == 4
    (followed / "sub").mkdir()
    shutil.copy(followed / "stop.json", followed / "sub/stop.json")
    with pytest.raises(UsageError, match="would lie in the run"):
        follow(f"eval monday -o {output} --stop-at strict")
    assert (followed / "stop.json").exists()
    assert (followed / "sub/stop.json").exists()
