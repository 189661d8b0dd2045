"""The scheduler with a scripted executor: slots, retries, claims, delivery and stops."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace

import pytest

from slop_code.errors import InfrastructureError
from slop_code.evaluation import CorrectnessResults
from slop_code.evaluation.report import Attempt, TestAttempt
from slop_code.execution.cache import Cache
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.jobs import scheduler as module
from slop_code.runs.jobs.job_records import JobPostponed, JobResult, JobRetrying, JobStarted, SubmissionOutcome
from slop_code.runs.jobs.run_control import Retries, RunControl
from slop_code.runs.jobs.scheduler import SchedulerContext, run_jobs
from slop_code.runs.result_archive import read_archived_results
from slop_code.runs.result_cache import ResultCache
from slop_code.runs.result_cache_key import duration_key, result_cache_key
from slop_code.runs.run_layout import RESULT_FILE

pytestmark = pytest.mark.e2e

AT_ONCE = Retries(wait_s=0)
LONG_S = 60
"""For what has to happen and is waited for; it is an error to wait so long."""


class Scripted:
    """`answer(work, stop)` gives what a job comes to, in a thread of its own; `stop` is set to end it."""

    def __init__(self, answer, slots=2):
        self.slots, self.answer = slots, answer
        self.works, self.stops, self.used, self.most = [], {}, 0, 0
        self.changing = threading.Lock()

    def submit(self, work):
        future, stop = Future(), threading.Event()
        with self.changing:
            self.works.append(work)
            self.used += work.weight
            self.most = max(self.most, self.used)
        self.stops[future] = stop
        threading.Thread(target=self._perform, args=(work, future, stop), daemon=True).start()
        return future

    def _perform(self, work, future, stop):
        future.set_running_or_notify_cancel()
        done, error = None, None
        try:
            done = self.answer(work, stop)
        except Exception as raised:  # noqa: BLE001
            error = raised
        with self.changing:
            self.used -= work.weight
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(done)

    def stop(self, future):
        self.stops[future].set()

    def close(self):
        pass

    @property
    def names(self):
        return [work.checkpoint for work in self.works]


class Bench:
    """A run with nothing done, its plan, and what an evaluation of each would give."""

    def __init__(self, world, snapshots="abc", runs=("monday",), **keys):
        self.world, self.result_cache = world, world.result_cache
        world.problem(count=len(snapshots), **keys)
        for run in runs:
            world.run(run, {"words": list(snapshots)})
        self.jobs = world.plan(world.discover(*runs)).jobs
        self.targets = {target.path: target for job in self.jobs for target in job.targets}

    def good(self, work, stop=None, **keys):
        results = self.world.results(self.targets[work.submission], attempts=list(work.attempts), **keys)
        return JobResult(CheckpointFacts.of(results), self.world.archive(results))

    def run_jobs(self, executor, *, control=None, retries=AT_ONCE, **options):
        context = SchedulerContext(
            executor=executor,
            result_cache=self.result_cache,
            retries=retries,
            control=control or RunControl(),
            **options,
        )
        return run_jobs(self.jobs, context)

    def unclaimed(self):
        """Whether nobody holds any of the keys."""
        claims = [self.result_cache.claim(job.key) for job in self.jobs]
        for claim in claims:
            if claim is not None:
                claim.release()
        return None not in claims

    def result(self, number, run="monday"):
        return CorrectnessResults.load(self.world.folder / run / f"words/checkpoint_{number}" / RESULT_FILE)


def test_results_of_a_remote_executor_are_cached_whatever_python_they_had(world):
    bench = Bench(world)
    bench.jobs = world.plan(world.discover(), remote=True).jobs

    def elsewhere(work, _):
        results = world.results(bench.targets[work.submission], python="3.0.1")
        return JobResult(CheckpointFacts.of(results), world.archive(results))

    for source in ("evaluated", "cached"):
        found = outcomes(bench.run_jobs(Scripted(elsewhere), remote=True))
        assert [(outcome.source, outcome.facts.digests.python) for outcome in found] == [(source, "3.0.1")] * 3


@pytest.fixture
def bench(world):
    return Bench(world)


def failed(reason="killed", *, state="infrastructure_failure", final=False):
    return JobResult(CheckpointFacts.no_verdict(reason, state=state, attempts=1), final=final)


def test_what_a_retried_attempt_left_is_kept_with_the_result(bench):
    def answer(work, stop):
        if work.attempts:
            return bench.good(work)
        results = bench.world.results(bench.targets[work.submission], infrastructure_failure_reason="killed")
        return JobResult(CheckpointFacts.of(results), bench.world.archive(results))

    events = list(bench.run_jobs(Scripted(answer)))
    assert [event.facts.state for event in outcomes(events)] == ["evaluated"] * 3
    kept = bench.world.folder / "monday/words/checkpoint_1/.scbench/attempt-1" / RESULT_FILE
    assert CorrectnessResults.load(kept).infrastructure_failure_reason == "killed"
    assert bench.result(1).attempts == [Attempt(reason="killed", duration=1.5)]


def outcomes(events):
    return [event for event in events if isinstance(event, SubmissionOutcome)]


def test_every_job_comes_to_its_end(bench):
    executor = Scripted(bench.good)
    events = list(bench.run_jobs(executor))
    assert Counter(type(event) for event in events) == {JobStarted: 3, SubmissionOutcome: 3}
    assert {event.source for event in outcomes(events)} == {"evaluated"}
    assert executor.names == [job.targets[0].checkpoint.name for job in bench.jobs]
    for job, work in zip(bench.jobs, executor.works, strict=True):
        assert (work.digest, work.submission, work.attempts) == (job.digest, job.targets[0].path, ())
        assert bench.result_cache.has(job.key)
        assert bench.result_cache.expected_duration(duration_key(job.targets[0])) == 1.5
    assert [bench.result(number).checkpoint_name[-1] for number in (1, 2, 3)] == ["1", "2", "3"]
    assert bench.unclaimed()


@pytest.mark.parametrize(
    ("slots", "parallel", "together"), [(1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 2, 2), (5, 2, 2), (2, 2, 1), (2, 64, 1)]
)
def test_slots_are_kept_busy_and_never_exceeded(world, slots, parallel, together):
    """So many run at the same time that they meet, and no more."""
    bench = Bench(world, snapshots="abcdef", parallel=parallel)
    meeting = threading.Barrier(together)

    def answer(work, stop):
        meeting.wait(LONG_S)
        return bench.good(work)

    executor = Scripted(answer, slots)
    assert len(outcomes(bench.run_jobs(executor))) == 6
    assert executor.most == together * min(parallel, slots) <= slots
    assert {work.weight for work in executor.works} == {min(parallel, slots)}


@pytest.mark.parametrize(
    ("seconds", "max_pairs", "slots", "weights"),
    [
        ([60.0], 8, 4, [4]),
        ([60.0], 3, 4, [3]),
        ([60.0], 1, 4, [1]),
        ([60.0, 60.0], 8, 4, [2, 2]),
        ([60.0] * 6, 8, 2, [1] * 6),
        ([60.0, 30.0], 8, 6, [4, 2]),
        ([None, None], 8, 6, [3, 3]),
    ],
)
def test_jobs_that_may_be_divided_share_the_slots(world, seconds, max_pairs, slots, weights):
    """Those that can run together meet; nothing waits, as all of them are to take long."""
    bench = Bench(world, snapshots="abcdef"[: len(seconds)], parallel="auto")
    known = zip(bench.jobs, seconds, strict=True)
    bench.jobs = [replace(job, expected_s=own, max_pairs=max_pairs) for job, own in known]
    meeting = threading.Barrier(min(len(weights), slots))

    def answer(work, stop):
        meeting.wait(LONG_S)
        return bench.good(work)

    executor = Scripted(answer, slots)
    events = list(bench.run_jobs(executor))
    assert [work.weight for work in executor.works] == weights
    assert executor.most <= slots
    started = [event.pairs for event in events if isinstance(event, JobStarted)]
    assert started == (weights if max_pairs > 1 else [1] * len(weights))


def test_the_last_job_waits_for_slots_that_are_free_soon(world):
    """Two are to end at once, so that the last one gets the slots of both."""
    bench = Bench(world, snapshots="abc", parallel="auto")
    bench.jobs = [
        *[replace(job, expected_s=0.0) for job in bench.jobs[:2]],
        replace(bench.jobs[2], expected_s=1e6, max_pairs=8),
    ]
    first, second = threading.Event(), threading.Event()

    def answer(work, stop):
        {"checkpoint_1": first, "checkpoint_2": second}.get(work.checkpoint, threading.Event()).wait(
            0 if work.checkpoint == "checkpoint_3" else LONG_S
        )
        return bench.good(work)

    executor, seen = Scripted(answer, slots=2), []
    for event in bench.run_jobs(executor):
        seen.append(event)
        if [type(each) for each in seen] == [JobStarted, JobStarted]:
            first.set()
        if isinstance(event, SubmissionOutcome) and event.submission is bench.jobs[0].targets[0]:
            second.set()
    assert [(work.checkpoint, work.weight) for work in executor.works] == [
        ("checkpoint_1", 1), ("checkpoint_2", 1), ("checkpoint_3", 2),
    ]  # fmt: skip


def test_a_divided_job_that_was_starved_runs_again_with_all_slots(world):
    bench = Bench(world, snapshots="ab", parallel="auto")
    bench.jobs = [replace(job, expected_s=60.0, max_pairs=8) for job in bench.jobs]
    late = TestAttempt(status="failed", duration_ms=1, failure_message=None, usage=None, timeout=None)

    def answer(work, stop):
        if work.checkpoint == "checkpoint_1" and not work.starved:
            return replace(bench.good(work), starved={"a": late})
        return bench.good(work)

    executor = Scripted(answer, slots=4)
    events = list(bench.run_jobs(executor))
    assert [(work.weight, work.alone) for work in executor.works] == [(2, False), (2, False), (4, True)]
    assert [event.pairs for event in events if isinstance(event, JobStarted)] == [2, 2, 1]


def test_durations_are_those_in_one_pair(world):
    """A job that was divided last time is not taken for a short one."""
    bench = Bench(world, snapshots="a", parallel="auto")
    list(bench.run_jobs(Scripted(lambda work, _: replace(bench.good(work), serial_s=42.0))))
    assert bench.result_cache.expected_duration(duration_key(bench.jobs[0].targets[0])) == 42.0


@pytest.mark.parametrize(
    "keys", ["isolation: none", "network: full", "isolation: none\nlimits: {memory: 2G}"], ids=["none", "full", "more"]
)
def test_submissions_that_share_a_network_run_one_at_a_time(world, keys):
    world.write({"monday/environment.yaml": f"type: local\nname: open\n{keys}\n"})
    bench = Bench(world, snapshots="abcd")
    executor = Scripted(bench.good, slots=4)
    assert len(outcomes(bench.run_jobs(executor))) == 4
    assert [work.weight for work in executor.works] == [4] * 4
    assert executor.most == 4


def test_a_cached_result_of_other_inputs_is_not_used(bench):
    """However it came under this key."""
    other, mine = bench.jobs[0], bench.jobs[1]
    list(bench.run_jobs(Scripted(bench.good)))
    bench.result_cache.put(mine.key, bench.result_cache.get(other.key))
    executor = Scripted(bench.good)
    events = list(bench.run_jobs(executor))
    assert executor.names == [mine.targets[0].checkpoint.name]
    assert Counter(event.source for event in outcomes(events)) == {"cached": 2, "evaluated": 1}


def test_slots_that_come_and_go(world):
    """A cluster grows and shrinks; no job is forgotten for it."""
    bench = Bench(world, snapshots="abcdef", parallel=8)
    executor = Scripted(bench.good, slots=8)

    def answer(work, stop):
        executor.slots = 2 if executor.slots == 8 else 8
        return bench.good(work)

    executor.answer = answer
    assert len(outcomes(bench.run_jobs(executor))) == 6


@pytest.mark.parametrize(
    ("made", "delay"), [(0, 1.0), (1, 2.0), (2, 4.0), (5, 32.0), (6, 60.0), (7, 60.0), (99_999, 60.0)]
)
def test_delays_double_up_to_a_bound(made, delay):
    assert Retries().delay(made) == delay
    assert AT_ONCE.delay(made) == 0


@pytest.mark.parametrize("how", ["returned", "raised"])
@pytest.mark.parametrize("failures", [0, 1, 2, 3])
def test_infrastructure_failures_are_retried(world, failures, how):
    bench = Bench(world, snapshots="a")

    def answer(work, stop):
        if len(work.attempts) == failures:
            return bench.good(work)
        if how == "raised":
            raise ConnectionError("node lost")
        return failed(f"failure {len(work.attempts)}")

    executor = Scripted(answer)
    events = list(bench.run_jobs(executor, retries=Retries(times=2, wait_s=0)))
    tries = min(failures, 2) + 1
    assert [len(work.attempts) for work in executor.works] == list(range(tries))
    assert sum(isinstance(event, JobRetrying) for event in events) == tries - 1
    [outcome] = outcomes(events)
    assert outcome.facts.state == ("evaluated" if failures <= 2 else "infrastructure_failure")
    reasons = [attempt.reason for attempt in executor.works[-1].attempts]
    if how == "raised":
        assert reasons == ["the executor lost this job: ConnectionError: node lost"] * (tries - 1)
    else:
        assert reasons == [f"failure {number}" for number in range(tries - 1)]
    if failures <= 2:
        assert [attempt.reason for attempt in bench.result(1).attempts] == reasons
    else:
        assert not bench.result_cache.has(bench.jobs[0].key)
    assert bench.unclaimed()


def test_a_retry_has_its_attempt_and_delay(world):
    bench = Bench(world, snapshots="a")
    executor = Scripted(lambda work, _: bench.good(work) if work.attempts else failed("slow node"))
    events = list(bench.run_jobs(executor, retries=Retries(times=1, wait_s=0.001)))
    [retrying] = [event for event in events if isinstance(event, JobRetrying)]
    assert retrying == JobRetrying(bench.jobs[0], Attempt(reason="slow node", duration=0), 0.001)
    assert [type(event) for event in events] == [JobStarted, JobRetrying, JobStarted, SubmissionOutcome]


LATE = TestAttempt(status="failed", duration_ms=1.0, failure_message="too late", usage=None, timeout=None)


def starved(reason="starved"):
    return replace(failed(reason), starved={"test_checkpoint_1.py::test_slow": LATE})


def test_starved_jobs_run_again_at_the_end_one_at_a_time(world):
    bench = Bench(world, snapshots="abcd")
    busy = {"checkpoint_1", "checkpoint_3"}

    def answer(work, stop):
        return bench.good(work) if work.alone or work.checkpoint not in busy else starved(work.checkpoint)

    executor = Scripted(answer, slots=3)
    events = list(bench.run_jobs(executor, retries=Retries(times=0)))
    *first, second, third = executor.works
    assert {work.checkpoint for work in first} == {f"checkpoint_{number}" for number in range(1, 5)}
    assert [work.alone for work in first] == [False] * 4
    assert {work.checkpoint for work in (second, third)} == busy
    assert [(work.alone, work.weight) for work in (second, third)] == [(True, 3)] * 2
    assert {event.job.targets[0].checkpoint.name for event in events if isinstance(event, JobPostponed)} == busy
    assert [outcome.facts.state for outcome in outcomes(events)] == ["evaluated"] * 4
    assert [attempt.reason for attempt in bench.result(3).attempts] == ["checkpoint_3"]
    assert second.starved == third.starved == {"test_checkpoint_1.py::test_slow": LATE}
    assert bench.unclaimed()


def test_what_a_starved_job_left_has_the_number_of_its_attempt(world):
    bench = Bench(world, snapshots="a")

    def answer(work, stop):
        if work.attempts and work.alone:
            return bench.good(work)
        reason = "busy" if work.attempts else "killed"
        return replace(
            bench.good(work, infrastructure_failure_reason=reason), starved=starved().starved if work.attempts else {}
        )

    list(bench.run_jobs(Scripted(answer)))
    folder = bench.world.folder / "monday/words/checkpoint_1/.scbench"
    kept = [CorrectnessResults.load(folder / f"attempt-{number}" / RESULT_FILE) for number in (1, 2)]
    assert [result.infrastructure_failure_reason for result in kept] == ["killed", "busy"]
    assert [attempt.reason for attempt in bench.result(1).attempts] == ["killed", "busy"]


def test_a_starved_job_that_finds_no_quiet_is_not_delivered(world):
    bench = Bench(world, snapshots="a")
    control = RunControl()

    def answer(work, stop):
        control.finish()
        return starved()

    assert outcomes(bench.run_jobs(Scripted(answer), control=control)) == []
    assert not bench.result_cache.has(bench.jobs[0].key)
    assert bench.unclaimed()


@pytest.mark.parametrize(
    "done",
    [
        failed("refused", final=True),
        failed("refused", state="not_evaluated", final=True),
        failed("refused", state="not_evaluated"),
    ],
)
def test_final_failures_are_not_retried(world, done):
    bench = Bench(world, snapshots="a")
    executor = Scripted(lambda *_: done)
    [outcome] = outcomes(bench.run_jobs(executor))
    assert (outcome.facts, len(executor.works)) == (done.facts, 1)
    assert not (outcome.submission.output / RESULT_FILE).exists()
    assert not bench.result_cache.has(bench.jobs[0].key)


def test_a_failure_is_delivered_and_not_cached(world):
    bench = Bench(world, snapshots="a")
    executor = Scripted(lambda work, _: bench.good(work, infrastructure_failure_reason="killed"))
    [outcome] = outcomes(bench.run_jobs(executor, retries=Retries(times=0)))
    assert outcome.facts.state == "infrastructure_failure"
    assert bench.result(1).infrastructure_failure_reason == "killed"
    assert not bench.result_cache.has(bench.jobs[0].key)
    assert bench.result_cache.expected_duration(duration_key(bench.jobs[0].targets[0])) is None


def test_a_cancelled_future_has_no_verdict(world):
    bench = Bench(world, snapshots="a")

    class Cancelling(Scripted):
        def submit(self, work):
            self.works.append(work)
            future = Future()
            future.cancel()
            return future

    executor = Cancelling(bench.good)
    [outcome] = outcomes(bench.run_jobs(executor))
    assert (outcome.facts.state, len(executor.works)) == ("not_evaluated", 1)


def test_an_executor_that_cannot_take_a_job_is_asked_again(world):
    bench = Bench(world, snapshots="ab")

    class Refusing(Scripted):
        refusals = 1

        def submit(self, work):
            if self.refusals:
                self.refusals -= 1
                raise RuntimeError("can't start new thread")
            return super().submit(work)

    found = outcomes(bench.run_jobs(Refusing(bench.good)))
    assert [outcome.facts.state for outcome in found] == ["evaluated"] * 2
    assert sorted(outcome.facts.attempts for outcome in found) == [1, 2]


def test_finish_lets_what_runs_end_and_starts_nothing(world):
    bench = Bench(world, snapshots="abcd")
    control, goes_on = RunControl(), threading.Event()

    def answer(work, stop):
        assert goes_on.wait(LONG_S)
        assert not stop.is_set()
        return bench.good(work)

    executor, seen = Scripted(answer), []
    for event in bench.run_jobs(executor, control=control):
        seen.append(event)
        if len(seen) == 2:
            control.finish()
            goes_on.set()
    assert len(outcomes(seen)) == len(executor.works) == 2
    assert bench.unclaimed()


def test_nothing_is_retried_after_finish(world):
    bench = Bench(world, snapshots="ab")
    control = RunControl()

    def answer(work, stop):
        control.finish()
        return failed()

    executor = Scripted(answer, slots=1)
    [outcome] = outcomes(bench.run_jobs(executor, control=control))
    assert (outcome.facts.state, len(executor.works)) == ("infrastructure_failure", 1)


def test_finish_drops_delayed_retries(bench):
    control, executor = RunControl(), Scripted(lambda *_: failed(), slots=1)
    for event in bench.run_jobs(executor, control=control, retries=Retries(wait_s=LONG_S, max_wait_s=LONG_S)):
        if isinstance(event, JobRetrying):
            control.finish()
    assert len(executor.works) == 1
    assert bench.unclaimed()


@pytest.mark.parametrize("how", ["stop", "stop from the job", "close", "raise"])
def test_running_jobs_are_stopped_and_waited_for(world, how):
    bench = Bench(world, snapshots="abcd")
    control, ended = RunControl(), []

    def answer(work, stop):
        if how == "stop from the job":
            control.stop()
        assert stop.wait(LONG_S)
        ended.append(work.checkpoint)
        return failed("stopped", state="not_evaluated", final=True)

    executor = Scripted(answer)
    events = bench.run_jobs(executor, control=control)
    seen = [next(events)] if how == "stop from the job" else [next(events), next(events)]
    if how == "close":
        events.close()
    elif how == "raise":
        with pytest.raises(KeyboardInterrupt):
            events.throw(KeyboardInterrupt)
    else:
        if how == "stop":
            control.stop()
        seen += list(events)
    assert {type(event) for event in seen} == {JobStarted}
    assert sorted(ended) == sorted(executor.names)
    assert executor.used == 0
    assert bench.unclaimed()


def test_a_stopped_control_starts_nothing(bench):
    control, executor = RunControl(), Scripted(bench.good)
    control.stop()
    assert list(bench.run_jobs(executor, control=control)) == []
    assert executor.works == []


def test_cached_results_start_no_job(bench):
    list(bench.run_jobs(Scripted(bench.good)))
    for number in (1, 2, 3):
        (bench.world.folder / f"monday/words/checkpoint_{number}" / RESULT_FILE).unlink()
    executor = Scripted(bench.good)
    events = list(bench.run_jobs(executor))
    assert executor.works == []
    assert [(type(event), event.source) for event in events] == [(SubmissionOutcome, "cached")] * 3
    assert bench.result(2).checkpoint_name == "checkpoint_2"
    assert len(outcomes(bench.run_jobs(executor, overwrite=True))) == len(executor.works) == 3
    assert bench.unclaimed()


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_a_damaged_cached_result_is_evaluated_again(bench, content):
    for job in bench.jobs:
        bench.result_cache.put(job.key, content)
    executor = Scripted(bench.good)
    assert {event.source for event in outcomes(bench.run_jobs(executor))} == {"evaluated"}
    assert len(executor.works) == 3
    assert all(bench.result_cache.get(job.key) != content for job in bench.jobs)


def test_the_result_of_another_evaluator_is_waited_for(world, monkeypatch):
    monkeypatch.setattr(module, "CLAIM_POLL_S", 0.01)
    bench = Bench(world, snapshots="ab")
    claim = bench.result_cache.claim(bench.jobs[0].key)
    seen = []
    executor = Scripted(bench.good, slots=1)
    for event in bench.run_jobs(executor):
        seen.append(event)
        if isinstance(event, SubmissionOutcome) and claim is not None:  # the second was not kept from running
            assert event.submission is bench.jobs[1].targets[0]
            bench.result_cache.put(bench.jobs[0].key, bench.good(_work(bench.jobs[0])).archive)
            claim.release()
            claim = None
    assert [event.source for event in outcomes(seen)] == ["evaluated", "cached"]
    assert executor.names == ["checkpoint_2"]


def test_a_result_that_appears_just_before_the_claim_is_used(world):
    """It was not there when it was looked for, and is when it is ours: nothing is evaluated a second time."""
    bench = Bench(world, snapshots="a")
    archive = bench.good(_work(bench.jobs[0])).archive

    class Late(ResultCache):
        def claim(self, key):
            self.put(key, archive)
            return super().claim(key)

    bench.result_cache = Late(Cache(world.folder / "cache"))
    executor = Scripted(bench.good)
    assert [outcome.source for outcome in outcomes(bench.run_jobs(executor))] == ["cached"]
    assert executor.works == []


def test_a_job_that_another_evaluator_gave_up_is_evaluated(world, monkeypatch):
    monkeypatch.setattr(module, "CLAIM_POLL_S", 0.01)
    bench = Bench(world, snapshots="ab")
    claim = bench.result_cache.claim(bench.jobs[0].key)
    seen = []
    for event in bench.run_jobs(Scripted(bench.good)):
        seen.append(event)
        if isinstance(event, SubmissionOutcome):
            claim.release()
    assert [event.source for event in outcomes(seen)] == ["evaluated", "evaluated"]
    assert bench.unclaimed()


def _work(job):
    return module.JobRequest(
        problem=job.targets[0].problem, checkpoint=job.targets[0].checkpoint.name,
        environment=job.targets[0].environment, submission=job.targets[0].path, digest=job.digest,
    )  # fmt: skip


def test_two_schedulers_with_one_cache_evaluate_each_key_once(world, monkeypatch):
    monkeypatch.setattr(module, "CLAIM_POLL_S", 0.01)
    benches = [Bench(world, snapshots="abcdefgh", runs=[name]) for name in ("monday", "tuesday")]
    assert [job.key for job in benches[0].jobs] == [job.key for job in benches[1].jobs]
    executors = [Scripted(bench.good) for bench in benches]
    together = threading.Barrier(2)

    def run(bench, executor):
        together.wait(LONG_S)
        return outcomes(bench.run_jobs(executor))

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(run, benches, executors))
    assert [len(each) for each in found] == [8, 8]
    evaluated = Counter(name for executor in executors for name in executor.names)
    assert evaluated == {f"checkpoint_{number}": 1 for number in range(1, 9)}
    assert Counter(outcome.source for each in found for outcome in each) == {"evaluated": 8, "cached": 8}
    for run_name in ("monday", "tuesday"):
        assert benches[0].result(8, run_name).checkpoint_name == "checkpoint_8"


def test_both_targets_get_the_result(world):
    bench = Bench(world, snapshots="a", runs=("monday", "tuesday"))
    assert len(bench.jobs) == 1
    executor = Scripted(bench.good)
    found = outcomes(bench.run_jobs(executor))
    assert [outcome.submission.run for outcome in found] == ["monday", "tuesday"]
    assert len(executor.works) == 1
    assert bench.result(1, "monday") == bench.result(1, "tuesday")


def test_a_submission_that_changed_since_the_plan_gets_its_own_result(world):
    """What came out is stored under what it rests on; the other target is not judged by code that is not its own."""
    bench = Bench(world, snapshots="a", runs=("monday", "tuesday"))
    [job] = bench.jobs
    world.write({"monday/words/checkpoint_1/snapshot/main.py": "changed"})
    executor = Scripted(bench.good)
    found = outcomes(bench.run_jobs(executor))
    assert [outcome.submission.run for outcome in found] == ["monday", "tuesday"]
    digests = [bench.result(1, run).provenance.digests for run in ("monday", "tuesday")]
    assert digests[0].submission != digests[1].submission == job.digest
    assert [outcome.facts.digests for outcome in found] == digests
    assert result_cache_key(job.targets[0].environment, digests[0]) != job.key
    for own in digests:
        key = result_cache_key(job.targets[0].environment, own)
        assert read_archived_results(bench.result_cache.get(key)).provenance.digests == own
    assert bench.unclaimed()


@pytest.mark.parametrize("how", ["other content", "other stamp", "failure", "cached"])
def test_a_result_of_a_followed_submission_that_changed_is_discarded(world, how):
    """It is neither delivered nor cached, and the job is not tried again on whatever is there now."""
    bench = Bench(world, snapshots="a")
    [job] = bench.jobs
    [target] = job.targets
    if how == "other content":
        world.write({"monday/words/checkpoint_1/snapshot/main.py": "changed"})
    keys = {"infrastructure_failure_reason": "killed"} if how == "failure" else {}
    executor = Scripted(lambda work, _: bench.good(work, **keys))
    if how == "cached":
        bench.result_cache.put(job.key, world.archive(world.results(target)))
    same = how == "other content"  # a change that leaves the stamp as it was is seen by the digest in the result
    [outcome] = outcomes(bench.run_jobs(executor, unchanged=lambda _: same))
    assert (outcome.facts.state, outcome.facts.reason) == ("not_evaluated", module.CHANGED)
    assert len(executor.works) == (how != "cached")
    assert not (target.output / RESULT_FILE).exists()
    assert bench.result_cache.has(job.key) == (how == "cached")
    assert bench.unclaimed()


def test_a_result_of_a_followed_submission_that_stayed_the_same_is_delivered(world):
    bench = Bench(world, snapshots="a")
    [outcome] = outcomes(bench.run_jobs(Scripted(bench.good), unchanged=lambda _: True))
    assert outcome.facts.state == "evaluated"
    assert bench.result(1).provenance.digests.submission == bench.jobs[0].digest


def test_a_result_of_another_version_is_not_cached_under_this_one(world):
    """A node of a cluster may have another slop-code."""
    bench = Bench(world, snapshots="a")

    def answer(work, stop):
        results = world.results(bench.targets[work.submission])
        provenance = results.provenance.model_copy(update={"evaluation_version": "0-other"})
        results = results.model_copy(update={"provenance": provenance})
        return JobResult(CheckpointFacts.of(results), world.archive(results))

    assert len(outcomes(bench.run_jobs(Scripted(answer)))) == 1
    assert not bench.result_cache.has(bench.jobs[0].key)


@pytest.mark.parametrize("what", ["a folder for the file", "a file for the folder"])
def test_an_output_that_cannot_be_written_has_no_verdict(world, what):
    """The rest goes on, and the result is not lost: the next time it is taken from the store."""
    bench = Bench(world)
    job = bench.jobs[1]
    output = world.folder / "elsewhere"
    if what == "a folder for the file":
        (output / RESULT_FILE).mkdir(parents=True)
    else:
        output.write_text("")
    bench.jobs = [bench.jobs[0], replace(job, targets=(replace(job.targets[0], output=output),)), bench.jobs[2]]
    found = outcomes(bench.run_jobs(Scripted(bench.good, slots=1)))
    assert [outcome.facts.state for outcome in found] == ["evaluated", "not_evaluated", "evaluated"]
    assert found[1].facts.reason.startswith(str(output))
    assert found[1].facts.reason.endswith("; make it writable and evaluate the run again")
    assert (found[1].facts.attempts, any(found[1].facts.passed.values())) == (1, False)
    assert [bench.result(number).checkpoint_name[-1] for number in (1, 3)] == ["1", "3"]
    assert all(bench.result_cache.has(one.key) for one in bench.jobs)
    assert bench.unclaimed()


def test_a_failure_that_cannot_be_written_keeps_its_reason(world):
    bench = Bench(world, snapshots="a")
    (bench.jobs[0].targets[0].output / RESULT_FILE).mkdir()
    executor = Scripted(lambda work, _: bench.good(work, infrastructure_failure_reason="killed"))
    [outcome] = outcomes(bench.run_jobs(executor, retries=Retries(times=0)))
    assert (outcome.facts.state, outcome.facts.reason) == ("infrastructure_failure", "killed")


@pytest.mark.parametrize(
    ("code", "step"),
    [(errno.ENOSPC, "make room"), (errno.EDQUOT, "make room"), (errno.EROFS, "make it writable"), (errno.EIO, None)],
    ids=["full", "quota", "read-only", "broken"],
)
def test_a_full_or_read_only_disk_ends_the_run(bench, monkeypatch, code, step):
    def broken(_descriptor):
        raise OSError(code, os.strerror(code))

    def answer(work, stop):
        done = bench.good(work)
        monkeypatch.setattr(os, "fsync", broken)
        return done

    events = bench.run_jobs(Scripted(answer, slots=1))
    if step is None:
        found = outcomes(events)
        assert (len(found), found[0].facts.state) == (3, "not_evaluated")
    else:
        path = bench.jobs[0].targets[0].output / RESULT_FILE
        message = f"{path}: {os.strerror(code)}; every result written before is whole"
        with pytest.raises(InfrastructureError, match=rf"{re.escape(message)}: {step} and start again"):
            list(events)
    monkeypatch.undo()
    assert not (bench.jobs[0].targets[0].output / RESULT_FILE).exists()
    assert bench.unclaimed()


@pytest.mark.parametrize("how", ["stop", "close", "raise"])
def test_verdicts_that_arrive_during_a_stop_are_delivered(bench, how):
    """Nobody has looked at these verdicts yet; one of them cannot even be delivered."""
    control, executor = RunControl(), Scripted(bench.good, slots=3)
    (bench.jobs[1].targets[0].output / RESULT_FILE).mkdir()
    events = bench.run_jobs(executor, control=control)
    assert [type(next(events)) for _ in bench.jobs] == [JobStarted] * 3
    assert not wait(executor.stops, LONG_S).not_done
    if how == "close":
        events.close()
    elif how == "raise":
        with pytest.raises(KeyboardInterrupt):
            events.throw(KeyboardInterrupt)
    else:
        control.stop()
        states = [outcome.facts.state for outcome in outcomes(events)]
        assert sorted(states) == ["evaluated", "evaluated", "not_evaluated"]
    assert all(bench.result_cache.has(job.key) for job in bench.jobs)
    assert [bench.result(number).checkpoint_name[-1] for number in (1, 3)] == ["1", "3"]
    assert bench.unclaimed()


def test_a_full_disk_during_a_stop_is_no_error(bench, monkeypatch):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    executor = Scripted(bench.good, slots=3)
    events = bench.run_jobs(executor)
    assert [type(next(events)) for _ in bench.jobs] == [JobStarted] * 3
    assert not wait(executor.stops, LONG_S).not_done
    monkeypatch.setattr(os, "fsync", full)
    events.close()
    monkeypatch.undo()
    assert bench.unclaimed()


def test_closing_the_generator_during_delivery_releases_the_claim(world):
    bench = Bench(world, snapshots="a", runs=("monday", "tuesday"))
    events = bench.run_jobs(Scripted(bench.good))
    assert isinstance(next(events), JobStarted)
    assert isinstance(next(events), SubmissionOutcome)
    events.close()
    assert bench.unclaimed()
    assert bench.result_cache.has(bench.jobs[0].key)


def test_a_result_without_an_output_is_cached_only(world):
    bench = Bench(world, snapshots="a")
    [job] = bench.jobs
    bench.jobs = [replace(job, targets=(replace(job.targets[0], output=None),))]
    assert len(outcomes(bench.run_jobs(Scripted(bench.good)))) == 1
    assert bench.result_cache.has(job.key)
    assert list(world.folder.rglob(RESULT_FILE)) == []


def test_a_job_whose_key_is_not_known_claims_nothing(world):
    bench = Bench(world, snapshots="a")
    [job] = bench.jobs
    claim = bench.result_cache.claim(job.key)
    bench.jobs = [replace(job, key=None)]
    assert [outcome.source for outcome in outcomes(bench.run_jobs(Scripted(bench.good)))] == ["evaluated"]
    assert bench.result_cache.has(job.key), "by then it is known"
    claim.release()


def test_two_runs_may_share_a_control(world):
    """Neither takes what belongs to the other; both end when it says so."""
    first, second = Bench(world), Bench(world, snapshots="xyz", runs=("tuesday",))
    control, both = RunControl(), threading.Barrier(2)

    def answer(bench):
        def meet(work, stop):
            both.wait(LONG_S)
            return bench.good(work)

        return meet

    def run(bench):
        return len(outcomes(bench.run_jobs(Scripted(answer(bench), slots=1), control=control)))

    with ThreadPoolExecutor(2) as pool:
        assert [future.result(LONG_S) for future in [pool.submit(run, first), pool.submit(run, second)]] == [3, 3]
    control.stop()
    assert (
        outcomes(Bench(world, snapshots="uvw", runs=("friday",)).run_jobs(Scripted(first.good), control=control)) == []
    )
