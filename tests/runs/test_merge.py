"""Merge of copies of a run folder; results that differ are never merged."""

from __future__ import annotations

import errno
import os
import shutil

import pytest

from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation import CorrectnessResults
from slop_code.runs.merge import merge_copies
from slop_code.runs.run_layout import RESULT_FILE

NOTHING_THERE = f": no result of this run in it; expected <problem>/<checkpoint>/{RESULT_FILE}"


@pytest.fixture
def copies(world):
    """The run without results, and two copies of it."""
    world.problem()
    world.run()
    for name in ("one", "two"):
        shutil.copytree(world.folder / "monday", world.folder / "copies" / name / "monday")
    return [world.folder / "copies" / name / "monday" for name in ("one", "two")]


def checkpoint_folder(folder, number):
    return folder / "words" / f"checkpoint_{number}"


def put(world, folder, number, marks="+", **keys):
    """A result for the run's own submission, in one of the copies; with a raw report beside it."""
    submission = world.discover()[0].submissions[number - 1]
    world.results(submission, marks, **keys).save(checkpoint_folder(folder, number) / RESULT_FILE)
    (checkpoint_folder(folder, number) / ".scbench").mkdir(exist_ok=True)
    (checkpoint_folder(folder, number) / ".scbench/pytest.log").write_text(f"log of {folder.parent.name}")


def merged(world, copies):
    [run] = world.discover()
    found = merge_copies(run, copies)
    assert found.submissions == run.submissions
    return {one.label: one.reason for one in found.issues if not one.reason.endswith(NOTHING_THERE)}


def results(world):
    """The marks of each checkpoint's result in the run; None where there is none."""
    found = []
    for number in (1, 2, 3):
        path = checkpoint_folder(world.folder / "monday", number) / RESULT_FILE
        tests = CorrectnessResults.load(path).tests if path.exists() else None
        found.append(None if tests is None else "".join("+" if test.status == "passed" else "-" for test in tests))
    return found


def test_copies_of_shards_merge_into_the_whole_run(world, copies):
    put(world, copies[0], 1, "+-")
    put(world, copies[1], 2, "-+")
    put(world, world.folder / "monday", 3, "++")
    assert merged(world, copies) == {}
    assert results(world) == ["+-", "-+", "++"]
    log = checkpoint_folder(world.folder / "monday", 2) / ".scbench/pytest.log"
    assert log.read_text() == "log of two"
    assert world.plan(world.discover()).jobs == ()
    assert checkpoint_folder(copies[0], 1).joinpath(RESULT_FILE).exists(), "copies stay as they are"


def test_checkpoints_in_no_copy_are_left_to_do(world, copies):
    put(world, copies[0], 1)
    assert merged(world, copies) == {}
    plan = world.plan(world.discover())
    assert [(target.label, plan.reasons[target.key]) for job in plan.jobs for target in job.targets] == [
        ("monday/words/checkpoint_2", "no result yet"), ("monday/words/checkpoint_3", "no result yet"),
    ]  # fmt: skip


def test_equal_verdicts_merge(world, copies):
    for folder in (*copies, world.folder / "monday"):
        put(world, folder, 1, "+-")
    put(world, copies[1], 1, "+-", duration=99.0)
    assert merged(world, copies) == {}
    assert results(world)[0] == "+-"


@pytest.mark.parametrize("own", [False, True])
def test_two_verdicts_that_differ_are_an_issue(world, copies, own):
    put(world, world.folder / "monday" if own else copies[0], 1, "+")
    put(world, copies[1], 1, "-")
    found = merged(world, copies)
    assert list(found) == ["monday/words/checkpoint_1"]
    assert str(checkpoint_folder(copies[1], 1) / RESULT_FILE) in found["monday/words/checkpoint_1"]
    assert "differs from another result" in found["monday/words/checkpoint_1"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_verdict_goes_before_an_infrastructure_failure(world, copies, order):
    put(world, copies[order[0]], 1, "", infrastructure_failure_reason="killed")
    put(world, copies[order[1]], 1, "+")
    assert merged(world, copies) == {}
    assert results(world)[0] == "+"


def test_an_infrastructure_failure_is_merged_where_there_is_no_result(world, copies):
    """It says why there is no verdict."""
    put(world, copies[1], 1, "", infrastructure_failure_reason="killed")
    assert merged(world, copies) == {}
    assert "an infrastructure failure last time" in world.plan(world.discover()).reasons.values()


def test_a_stale_result_does_not_replace_a_verdict(world, copies):
    put(world, copies[0], 1, "-", args=["-k", "x"])
    put(world, copies[1], 1, "-")
    world.write({"problems/words/tests/test_checkpoint_1.py": "edited"})
    put(world, world.folder / "monday", 1, "+")
    assert merged(world, copies) == {}
    assert results(world)[0] == "+"


def test_another_s_submission_gives_no_verdict_on_this_one(world, copies):
    put(world, copies[0], 1, "+")
    world.write({"monday/words/checkpoint_1/snapshot/main.py": "changed since"})
    assert merged(world, copies) == {}
    plan = world.plan(world.discover())
    reasons = {target.label: plan.reasons[target.key] for job in plan.jobs for target in job.targets}
    assert reasons["monday/words/checkpoint_1"] == "the submission changed"


def cut(path):
    path.write_bytes(path.read_bytes()[:-30])


def nonsense(path):
    path.write_text("{}")


def a_link(path):
    path.rename(path.with_name("moved.json"))
    path.symlink_to("moved.json")


def a_folder(path):
    path.unlink()
    path.mkdir()


def a_pipe(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("spoil", [cut, nonsense, a_link, a_folder, a_pipe])
def test_a_damaged_result_is_none_and_is_named(world, copies, spoil):
    put(world, copies[0], 1)
    spoil(checkpoint_folder(copies[0], 1) / RESULT_FILE)
    put(world, copies[1], 2)
    found = merged(world, copies)
    assert list(found) == ["monday/words/checkpoint_1"]
    assert found["monday/words/checkpoint_1"].startswith(f"{checkpoint_folder(copies[0], 1) / RESULT_FILE}: ")
    assert results(world) == [None, "+", None]


@pytest.mark.parametrize("where", ["copy", "run"])
@pytest.mark.parametrize("spoil", [cut, nonsense, a_link])
def test_a_good_result_replaces_a_damaged_one_which_is_named(world, copies, spoil, where):
    folder = copies[0] if where == "copy" else world.folder / "monday"
    put(world, folder, 1, "-")
    spoil(checkpoint_folder(folder, 1) / RESULT_FILE)
    (checkpoint_folder(folder, 1) / ".scbench").mkdir(exist_ok=True)
    put(world, copies[1], 1, "+")
    [reason] = merged(world, copies).values()
    assert reason.startswith(f"{checkpoint_folder(folder, 1) / RESULT_FILE}: ")
    assert reason.endswith("another result for this checkpoint is used")
    assert results(world)[0] == "+"


def test_a_missing_copy_is_rejected(world, copies):
    with pytest.raises(UsageError, match="nowhere: there is no such folder"):
        merged(world, [*copies, world.folder / "nowhere"])


def test_a_run_that_cannot_be_written_to(world, copies):
    put(world, copies[0], 1)
    put(world, copies[0], 2)
    (checkpoint_folder(world.folder / "monday", 2) / RESULT_FILE).mkdir()
    with pytest.raises(InfrastructureError, match=r"checkpoint_2: .*every result merged before is whole"):
        merged(world, copies)
    (checkpoint_folder(world.folder / "monday", 2) / RESULT_FILE).rmdir()
    assert results(world) == ["+", None, None]


def test_a_submission_that_cannot_be_read_is_reported_once(world, copies):
    put(world, copies[0], 1)
    (world.problems / "words/tests/test_checkpoint_2.py").unlink()
    [run] = world.discover()
    plan = world.plan([merge_copies(run, copies[:1])])
    assert [issue.label for issue in plan.issues] == ["monday/words/checkpoint_2"]
    assert results(world)[0] == "+"


def test_a_snapshot_that_cannot_be_read_leaves_the_others_to_merge(world, copies, monkeypatch):
    """As where a file is damaged on the disk."""
    put(world, copies[0], 1)
    put(world, copies[0], 2)
    [run] = world.discover()
    broken = checkpoint_folder(world.folder / "monday", 1) / "snapshot"

    def scandir(path, real=os.scandir):
        if str(path) == str(broken):
            raise OSError(errno.EIO, "Input/output error")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    plan = world.plan([merge_copies(run, copies[:1])])
    assert [issue.label for issue in plan.issues] == ["monday/words/checkpoint_1"]
    assert results(world) == [None, "+", None]


def test_a_copy_without_any_result_is_an_issue(world, copies):
    """Such as the folder above or below the one that was meant."""
    put(world, copies[0], 1)
    [run] = world.discover()
    given = [copies[0], copies[1], copies[0].parent]
    assert [(one.label, one.reason) for one in merge_copies(run, given).issues] == [
        ("monday", f"{copy}{NOTHING_THERE}") for copy in given[1:]
    ]
