"""The follower of a run, with a clock of its own: which snapshots it holds back, and which are new."""

from __future__ import annotations

import pytest

from slop_code.runs.follow.completeness import NO_DONE_FILE, NOT_SETTLED
from slop_code.runs.follow.follower import Follower


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def follower(clock):
    return Follower(settle_s=2, clock=clock)


@pytest.fixture
def run(world):
    world.problem(count=2)
    return world.run(snapshots={"words": ["a", "b"]})


def finish(run, number):
    (run / f"words/checkpoint_{number}/snapshot.done").touch()


def look(world, follower):
    """Numbers of the complete snapshots, and the reasons of the others."""
    [found] = world.discover()
    held = follower.hold_back(found)
    return held, [item.checkpoint.name[-1] for item in held.submissions], [issue.reason for issue in held.issues]


def test_a_snapshot_is_held_back_until_it_is_complete(world, run, follower, clock):
    finish(run, 1)
    assert look(world, follower)[1:] == ([], [NOT_SETTLED, NO_DONE_FILE])
    assert follower.settling
    clock.now += 2
    held, complete, reasons = look(world, follower)
    assert (complete, reasons) == (["1"], [NO_DONE_FILE])
    assert not follower.settling
    assert held.issues[0].checkpoint == "checkpoint_2"
    assert follower.has_new(held)


def test_an_evaluated_snapshot_is_new_again_when_it_changes(world, run, follower, clock):
    finish(run, 1)
    look(world, follower)
    clock.now += 2
    held, *_ = look(world, follower)
    follower.evaluated(held)
    clock.now += 2
    held, complete, _ = look(world, follower)
    assert complete == ["1"]
    assert not follower.has_new(held)
    [submission] = held.submissions
    assert follower.is_unchanged(submission)

    (submission.path / "late.py").touch()
    assert not follower.is_unchanged(submission)
    held, complete, _ = look(world, follower)
    assert complete == []
    assert not follower.has_new(held)
    clock.now += 2
    held, complete, _ = look(world, follower)
    assert complete == ["1"]
    assert follower.has_new(held)


def test_a_change_during_the_evaluation_makes_it_new_again(world, run, follower, clock):
    finish(run, 1)
    look(world, follower)
    clock.now += 2
    held, *_ = look(world, follower)
    (run / "words/checkpoint_1/snapshot/late.py").touch()
    follower.evaluated(held)
    assert look(world, follower)[1] == []
    clock.now += 2
    assert follower.has_new(look(world, follower)[0])


def test_a_done_file_that_comes_late_starts_the_settle_time(world, run, follower, clock):
    look(world, follower)
    clock.now += 50
    finish(run, 1)
    assert look(world, follower)[1] == []
    clock.now += 2
    assert look(world, follower)[1] == ["1"]
