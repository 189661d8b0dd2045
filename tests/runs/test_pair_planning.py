"""Shares of slots: many jobs get one each, a long one and the last ones several, and never more than there are."""

from __future__ import annotations

import heapq
import random

import pytest

from slop_code.execution.cancellation import MAX_WAIT_S
from slop_code.runs.jobs.pair_planning import RunningWork, WaitingWork, expected_left, slots_for_next

MANY = 99


def work(seconds, max_pairs=MANY):
    return WaitingWork(seconds, max_pairs)


@pytest.mark.parametrize(
    ("waiting", "free", "slots"),
    [
        ([work(60)], 4, 4),
        ([work(60)], 1, 1),
        ([work(60, 3)], 4, 3),
        ([work(60, 1)], 4, 1),
        ([work(60)] * 2, 4, 2),
        ([work(60)] * 4, 4, 1),
        ([work(60)] * 400, 4, 1),
        ([work(1000), *[work(10)] * 10], 4, 4),
        ([work(100), *[work(10)] * 40], 4, 1),
        ([work(100), *[work(10)] * 20], 4, 2),
        ([work(200), *[work(10)] * 20], 4, 2),
        ([work(62), work(60), work(59), work(58)], 4, 1),
        ([work(60)] * 3, 4, 2),
        ([work(None)], 4, 4),
        ([work(None), work(None)], 4, 2),
        ([work(None), work(10), work(30)], 3, 1),
        ([work(None), work(10), work(10)], 6, 2),
        ([work(0)], 4, 1),
        ([work(60)], 0, 0),
    ],
)
def test_a_job_gets_its_share_of_the_free_slots(waiting, free, slots):
    assert slots_for_next(waiting, free, []) == slots


@pytest.mark.parametrize(
    ("waiting", "running", "slots"),
    [
        ([work(60)], [RunningWork(1, 1.0)] * 3, 0),
        ([work(60)], [RunningWork(3, 1.0)], 0),
        ([work(60)], [RunningWork(1, 55.0)] * 3, 1),
        ([work(60)], [RunningWork(1, None)] * 3, 1),
        ([work(60)], [RunningWork(1, 1.0), RunningWork(2, None)], 0),
        ([work(60, 1)], [RunningWork(1, 1.0)] * 3, 1),
        ([work(None)], [RunningWork(1, 1.0)] * 3, 1),
        ([work(60)] * 2, [RunningWork(1, 1.0)] * 3, 0),
        ([work(60)] * 8, [RunningWork(1, 1.0)] * 3, 1),
        ([work(60), work(60, 1)], [RunningWork(1, 1.0)] * 3, 1),
    ],
    ids=[
        "last", "one that holds all others", "soon done itself", "of unknown length", "the first is enough",
        "cannot be divided", "nothing is known of it", "last two", "many wait", "another takes long anyway",
    ],
)  # fmt: skip
def test_the_tail_waits_for_slots_that_are_free_soon(waiting, running, slots):
    """One of four slots is free."""
    assert slots_for_next(waiting, 1, running) == slots


@pytest.mark.parametrize(
    ("seconds", "pairs", "elapsed", "left"),
    [(60, 1, 0, 60), (60, 2, 0, 30), (60, 2, 20, 10), (60, 1, 60, 0), (60, 1, 75, 15), (None, 1, 5, None)],
)
def test_a_late_job_is_expected_to_take_as_long_again(seconds, pairs, elapsed, left):
    assert expected_left(seconds, pairs, elapsed) == left


def simulated(jobs, slots, surprise=lambda seconds: seconds):
    """The end of a run in which jobs take `surprise(expected)`, and the most slots that were taken at a time."""
    waiting, running, now, most = sorted(jobs, key=lambda job: -job.seconds), [], 0.0, 0
    while waiting or running:
        used = sum(taken for _, _, taken, _ in running)
        most = max(most, used)
        while waiting and used < slots:
            left = [
                RunningWork(taken, expected_left(job.seconds, taken, now - began)) for _, began, taken, job in running
            ]
            taken = slots_for_next(waiting, slots - used, left)
            if not taken:
                break
            job = waiting.pop(0)
            heapq.heappush(running, (now + surprise(job.seconds) / taken, now, taken, job))
            used += taken
        most = max(most, used)
        if waiting and used < slots and running[0][0] > now + MAX_WAIT_S:
            now += MAX_WAIT_S  # it looks again after a while
        else:
            now = heapq.heappop(running)[0]
    return now, most


def serial(jobs, slots):
    return simulated([WaitingWork(job.seconds, 1) for job in jobs], slots)[0]


@pytest.mark.e2e
@pytest.mark.parametrize("slots", [1, 2, 3, 4, 16])
def test_random_runs_end_no_later_than_undivided_and_near_the_least_possible(slots):
    drawn, ends = random.Random(18), []
    for _ in range(50):
        jobs = [work(drawn.choice([1, 5, 30, 60, 400]) * drawn.uniform(0.5, 2)) for _ in range(drawn.randint(1, 30))]
        jobs = [WaitingWork(job.seconds + index / 1e6, job.max_pairs) for index, job in enumerate(jobs)]
        end, most = simulated(jobs, slots)
        least = sum(job.seconds for job in jobs) / slots
        assert most <= slots
        assert end <= 1.1 * serial(jobs, slots)
        ends.append(end / least)
    assert sum(ends) / len(ends) <= 1.15


def test_wrong_expectations_cost_little():
    """Jobs that take a third or thrice as long as before: nothing waits without end for one that is late."""
    drawn, ends, undivided = random.Random(18), 0.0, 0.0
    for _ in range(60):
        jobs = [work(drawn.uniform(5, 100)) for _ in range(drawn.randint(4, 20))]
        factors = {job.seconds: drawn.choice([1 / 3, 1, 3]) for job in jobs}

        def surprise(seconds, factors=factors):
            return seconds * factors[seconds]

        end, most = simulated(jobs, 4, surprise)
        whole, _ = simulated([WaitingWork(job.seconds, 1) for job in jobs], 4, surprise)
        assert most <= 4
        ends, undivided = ends + end, undivided + whole
        assert end <= 2 * whole
    assert ends < undivided
