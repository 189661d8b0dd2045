"""The scheduler with a feed: jobs that come and are cancelled while others run."""

from __future__ import annotations

from dataclasses import replace

from slop_code.evaluation.report import TestAttempt
from slop_code.runs.jobs.job_feed import JobFeed
from slop_code.runs.jobs.job_records import JobPostponed, JobRetrying, JobStarted, SubmissionOutcome
from slop_code.runs.jobs.run_control import RunControl
from tests.runs.test_scheduler import LONG_S, Bench, Scripted, failed

STARVED = {"a": TestAttempt(status="failed", duration_ms=1, failure_message=None, usage=None, timeout=None)}


class FedBench(Bench):
    """The jobs of the bench are fed by the test."""

    def __init__(self, world, snapshots):
        super().__init__(world, snapshots)
        self.fed, self.jobs = list(self.jobs), []
        self.control = RunControl()
        self.feed = JobFeed(self.control)

    def events(self, executor):
        return self.run_jobs(executor, control=self.control, feed=self.feed)


def checkpoints(events):
    return [event.submission.checkpoint.name for event in events if isinstance(event, SubmissionOutcome)]


def test_a_job_that_comes_while_nothing_runs_is_evaluated(world):
    bench = FedBench(world, "ab")
    bench.feed.add(bench.fed[0])
    seen = []
    for event in bench.events(Scripted(bench.good)):
        seen.append(event)
        if checkpoints(seen) == ["checkpoint_1"] and len(seen) == 2:
            bench.feed.add(bench.fed[1])
        if checkpoints(seen) == ["checkpoint_1", "checkpoint_2"]:
            bench.control.finish()
    assert checkpoints(seen) == ["checkpoint_1", "checkpoint_2"]


def test_a_cancelled_job_ends_without_a_verdict_whether_it_runs_or_waits(world):
    bench = FedBench(world, "ab")

    def answer(work, stop):
        assert stop.wait(LONG_S)
        return failed("stopped before its end", state="not_evaluated", final=True)

    executor, outcomes = Scripted(answer, slots=1), []
    for job in bench.fed:
        bench.feed.add(job)
    for event in bench.events(executor):
        if isinstance(event, JobStarted):
            for job in reversed(bench.fed):
                bench.feed.cancel(job)
            bench.control.finish()
        else:
            outcomes.append((event.submission.checkpoint.name, event.facts.state, event.facts.reason))
    assert sorted(outcomes) == [
        (name, "not_evaluated", "stopped before its end") for name in ("checkpoint_1", "checkpoint_2")
    ]
    assert len(executor.works) == 1
    bench.jobs = bench.fed
    assert bench.unclaimed()


def test_a_cancelled_job_is_not_retried(world):
    bench = FedBench(world, "a")

    def answer(work, stop):
        assert stop.wait(LONG_S)
        return failed("the disk is full")

    bench.feed.add(bench.fed[0])
    events = []
    for event in bench.events(Scripted(answer)):
        events.append(event)
        bench.feed.cancel(bench.fed[0])
        if isinstance(event, SubmissionOutcome):
            bench.control.finish()  # not before: a run that finishes retries nothing
    assert not [event for event in events if isinstance(event, JobRetrying)]
    assert checkpoints(events) == ["checkpoint_1"]


def test_a_starved_job_runs_next_and_alone_although_the_feed_goes_on(world):
    bench = FedBench(world, "abc")

    def answer(work, stop):
        if work.checkpoint == "checkpoint_1" and not work.starved:
            return replace(bench.good(work), starved=STARVED)
        return bench.good(work)

    executor = Scripted(answer, slots=1)
    for job in bench.fed:
        bench.feed.add(job)
    seen = []
    for event in bench.events(executor):
        seen.append(event)
        if len(checkpoints(seen)) == 3:
            bench.control.finish()
    assert [(work.checkpoint, work.alone) for work in executor.works] == [
        ("checkpoint_1", False), ("checkpoint_1", True), ("checkpoint_2", False), ("checkpoint_3", False),
    ]  # fmt: skip
    assert [type(event) for event in seen].count(JobPostponed) == 1
