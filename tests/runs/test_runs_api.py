"""`evaluate_run` without boxes: outcomes, issues, closing and cancellation."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

import pytest

from slop_code import Retries, RunControl, Shard, Submission, evaluate_run, evaluate_run_async
from slop_code.errors import InfrastructureError, UsageError
from slop_code.execution.cache import Cache
from slop_code.execution.cancellation import EvaluationCancelledError, wait_for
from slop_code.execution.environment import load_environment
from slop_code.runs import executors
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.discover import UNNAMED_RUN, DiscoveredRun
from slop_code.runs.jobs.job_records import JobResult
from slop_code.runs.run_evaluation import RunSettings, open_runs

LONG_S = 60
"""For what has to happen and is waited for; it is an error to wait so long."""


class Held:
    """Jobs of one slot that wait for the test: `submitted` tells each, `stopping` that one is to end, `go` lets go."""

    slots = 1
    answer = go = stopping = submitted = None

    def __init__(self, *_):
        pass

    def prepare(self, wanted):
        self.wanted = wanted

    def submit(self, work):
        future = Future()
        self.submitted.put(work)
        threading.Thread(target=self._end, args=(work, future), daemon=True).start()
        return future

    def _end(self, work, future):
        try:
            assert self.go.wait(LONG_S)
            future.set_result(type(self).answer(work))
        except Exception as error:  # noqa: BLE001
            future.set_exception(error)

    def stop(self, future):
        self.stopping.set()

    def close(self):
        pass


@pytest.fixture
def held(monkeypatch):
    """The executor's class, under the name `held`."""

    class Own(Held):
        go, stopping, submitted = threading.Event(), threading.Event(), SimpleQueue()

    monkeypatch.setitem(executors.BUILT_IN, "held", f"{__name__}:Held")
    monkeypatch.setattr(f"{__name__}.Held", Own)
    yield Own
    Own.go.set()


@pytest.fixture
def run(world):
    world.problem()
    return world.run()


@pytest.fixture
def options(world):
    return {"problems_dir": world.problems, "cache": world.folder / "cache"}


@pytest.fixture
def loose(world, run):
    """Those of the run, as submissions that lie anywhere."""
    [found] = world.discover()
    return [replace(one, run="", output=world.folder / "out" / one.checkpoint.name) for one in found.submissions]


def good(world):
    [found] = world.discover()
    by_path = {one.path: one for one in found.submissions}

    def answer(work):
        results = world.results(by_path[work.submission])
        return JobResult(CheckpointFacts.of(results), world.archive(results))

    return answer


def test_paths_may_be_strings(loose):
    one = loose[0]
    about = {"problem": one.problem, "checkpoint": one.checkpoint, "environment": one.environment}
    assert Submission(**about, path=str(one.path), output=str(one.output)) == one
    assert Submission(**about, path=str(one.path)).output is None


@pytest.mark.parametrize("kind", [str, Path])
def test_an_environment_is_given_by_the_path_of_its_file(world, run, held, options, kind):
    held.answer = good(world)
    held.go.set()
    file = world.folder / "own.yaml"
    file.write_text("{name: own, type: local, isolation: none}")
    outcomes = list(evaluate_run(run, environment=kind(file), executor="held", **options))
    assert outcomes
    assert all(outcome.submission.environment == load_environment(file) for outcome in outcomes)


@pytest.mark.parametrize("inner", [".", "out", "deep/er", "../snapshot/out", "../link/out"])
def test_an_output_inside_a_submission_is_rejected(loose, options, inner):
    first, second = loose[:2]
    (first.path.parent / "link").symlink_to(first.path)
    for guilty in (first, second):
        given = [first, second, replace(guilty, output=first.path / inner)]
        with pytest.raises(UsageError, match="lies inside the submission"):
            next(evaluate_run(given, cache=options["cache"]))


def test_two_submissions_may_not_share_an_output(loose, options, world):
    given = [loose[0], replace(loose[1], output=world.folder / "x" / ".." / "out" / "checkpoint_1")]
    with pytest.raises(UsageError, match=r"out/checkpoint_1: the output of both .*1/snapshot and .*2/snapshot"):
        next(evaluate_run(given, cache=options["cache"]))
    assert not (world.folder / "out").exists()


def test_an_executor_has_as_many_slots_as_workers_were_asked_for(world, run, held, options):
    """The scheduler uses no more than these."""
    given = []
    held.__init__ = lambda _, slots, *__: given.append(slots)
    held.answer = good(world)
    held.go.set()
    assert list(evaluate_run(run, executor="held", workers=2, **options))
    assert given == [2]


@pytest.mark.parametrize("workers", [0, -1])
def test_fewer_than_one_worker_is_rejected(run, options, workers):
    with pytest.raises(UsageError, match=f"workers: expected at least 1, found {workers}"):
        next(evaluate_run(run, **options, workers=workers))


def test_issues_are_raised_after_the_last_outcome(world, run, options):
    [found] = world.discover()
    world.finish_all(found.submissions)
    world.run(snapshots={"unheard-of": ["a"], "unknown": ["b"]})
    seen = []
    with pytest.raises(UsageError) as caught:
        seen.extend(iter(evaluate_run(run, **options).__next__, None))
    assert [outcome.source for outcome in seen] == ["up_to_date"] * 3
    assert "monday/unheard-of" in str(caught.value)
    assert "monday/unknown" in str(caught.value)
    assert (run / "summary.json").exists()


def test_a_rejected_submission_is_an_outcome_and_no_error(world, loose, options):
    gone = replace(loose[0], path=world.folder / "gone")
    [outcome] = list(evaluate_run([gone], cache=options["cache"]))
    assert (outcome.submission, outcome.source, outcome.facts.state) == (gone, "rejected", "not_evaluated")
    assert "gone" in outcome.facts.reason


def test_what_is_up_to_date_is_in_the_lines_without_being_asked_for(world, run):
    found = world.discover()
    world.finish_all(found[0].submissions)
    with open_runs(found, Cache(world.folder / "cache"), RunSettings()) as evaluation:
        lines, summary = evaluation.conclude()
    assert [line.state for line in lines] == ["evaluated"] * 3
    assert summary.totals.checkpoints.evaluated == 3


def test_the_cache_is_not_pruned_while_a_run_is_locked(world, run):
    cache, found = Cache(world.folder / "cache"), world.discover()
    with open_runs(found, cache, RunSettings()), pytest.raises(InfrastructureError, match="evaluations are running"):
        cache.exclusive_lock().__enter__()
    with open_runs(found, cache, RunSettings(), lock=False), cache.exclusive_lock():
        pass


def test_result_folders_are_hidden_from_every_submission(world, run, loose, held):
    """And there, so that it can be hidden, before the first of them starts."""
    there = []
    held.answer, cache = good(world), Cache(world.folder / "cache")
    held.go.set()
    given = [*world.discover(), DiscoveredRun(UNNAMED_RUN, None, tuple(loose))]
    with open_runs(given, cache, RunSettings(executor="held")) as evaluation, evaluation.executor() as executor:
        for _ in evaluation.events(executor, RunControl()):
            there.append([one.output.is_dir() for one in loose])
    assert there[0] == [True] * 3
    for _ in range(3):
        assert held.submitted.get(timeout=LONG_S).hidden == (run, *(one.output for one in loose))


def test_cached_jobs_need_no_preparation(world, run, held, options):
    held.answer = good(world)
    held.go.set()
    assert len(list(evaluate_run(run, **options, executor="held"))) == 3
    [found] = world.discover()
    (found.submissions[0].path / "main.py").write_text("new")
    for submission in found.submissions:
        (submission.output / "evaluation.json").unlink()
    with open_runs([found], Cache(options["cache"]), RunSettings(executor="held")) as evaluation:
        with evaluation.executor() as executor:
            assert [one.checkpoint.name for one in executor.wanted] == ["checkpoint_1"]


def test_jobs_never_wait_for_the_reader(world, run, held, options):
    held.answer = good(world)
    held.go.set()
    reading = evaluate_run(run, **options, executor="held")
    first = next(reading)
    submitted = [held.submitted.get(timeout=LONG_S).checkpoint for _ in range(3)]
    assert submitted == [f"checkpoint_{number}" for number in (1, 2, 3)]
    assert [first.submission.checkpoint.name, *(one.submission.checkpoint.name for one in reading)] == submitted


def running():
    return [thread for thread in threading.enumerate() if thread.name == "slop-code run"]


def test_nothing_starts_before_the_first_outcome_is_read(run, held, options):
    reading = evaluate_run(run, **options, executor="held")
    assert (running(), held.submitted.empty()) == ([], True)
    reading.close()


def test_closing_the_generator_stops_running_jobs(world, run, held, options):
    """What runs is stopped and waited for; a verdict that comes all the same is kept."""
    held.answer, control = good(world), RunControl()
    [found] = world.discover()
    world.finish(found.submissions[0])
    reading = evaluate_run(run, **options, executor="held", control=control)
    assert next(reading).source == "up_to_date"
    work = held.submitted.get(timeout=LONG_S)
    letting_go = threading.Thread(target=lambda: held.stopping.wait(LONG_S) and held.go.set())
    letting_go.start()
    reading.close()
    letting_go.join()
    assert (control.stopped, running(), held.submitted.empty()) == (True, [], True)
    assert (work.submission.parent / "evaluation.json").exists()


async def collect(runs, **options):
    return [outcome async for outcome in evaluate_run_async(runs, **options)]


@pytest.mark.parametrize("how", ["sync", "async"])
def test_the_end_of_a_run_does_not_stop_its_control(world, run, held, options, how):
    held.answer, control = good(world), RunControl()
    held.go.set()
    given = {**options, "executor": "held", "control": control}
    found = list(evaluate_run(run, **given)) if how == "sync" else asyncio.run(collect(run, **given))
    assert (len(found), control.stopped, control.finishing) == (3, False, False)


@pytest.mark.parametrize("how", ["sync", "async"])
def test_errors_are_raised_in_the_reader(run, options, how):
    control = RunControl()
    given = {**options, "executor": "no-such-executor", "control": control}
    with pytest.raises(UsageError, match="no-such-executor"):
        list(evaluate_run(run, **given)) if how == "sync" else asyncio.run(collect(run, **given))
    assert (control.stopped, running()) == (False, [])


def test_a_task_that_is_cancelled_twice_still_waits_for_the_end(world, run, held, options):
    held.answer = good(world)

    async def main():
        outcomes = evaluate_run_async(run, **options, executor="held")
        reading = asyncio.create_task(anext(outcomes))
        await asyncio.to_thread(held.submitted.get, timeout=LONG_S)
        reading.cancel()
        await asyncio.to_thread(held.stopping.wait, LONG_S)
        for _ in range(3):
            reading.cancel()
            for _ in range(10):
                await asyncio.sleep(0)
            assert not reading.done()
        held.go.set()
        with pytest.raises(asyncio.CancelledError):
            await reading
        return running()

    assert asyncio.run(main()) == []
    assert world.result_cache.info().entries == 1, "it came to a verdict all the same"


def test_a_run_is_stopped_while_it_is_prepared(world, run, held, options):
    control, waits, waited = RunControl(), threading.Event(), []

    def prepare(self, wanted):
        waits.set()
        waited.append(wait_for(None, LONG_S))

    held.prepare = prepare
    stopper = threading.Thread(target=lambda: waits.wait(LONG_S) and control.stop())
    stopper.start()
    assert list(evaluate_run(run, **options, executor="held", control=control)) == []
    stopper.join()
    assert (waited, held.submitted.empty()) == ([], True)


def test_a_control_wakes_blocking_waits():
    control = RunControl()
    with control.cancel_scope():
        wait_for(None, 0)
        control.stop()
        with pytest.raises(EvaluationCancelledError):
            wait_for(None, LONG_S)
    with control.cancel_scope(), pytest.raises(EvaluationCancelledError):
        wait_for(None, LONG_S)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"runs": 3}, "runs: expected the folder of a run, or a list of folders or of Submissions, found 3 (int)"),
        ({"runs": None}, "runs: expected the folder of a run"),
        ({"runs": [3]}, "runs: expected the folder of a run"),
        ({"runs": "a\0"}, "runs: expected the folder of a run"),
        ({"problems_dir": 3}, "problems_dir: expected the path of a folder, or None, found 3 (int)"),
        ({"problems": "larder"}, "problems: expected a list of names of problems, found 'larder' (str)"),
        ({"problems": [3]}, "problems: expected a list of names of problems, found [3] (list)"),
        ({"environment": 3}, "environment: expected a name, a path, an EnvironmentSpec or None, found 3 (int)"),
        ({"workers": "2"}, "workers: expected a number, or None, found '2' (str)"),
        ({"workers": True}, "workers: expected a number, or None, found True (bool)"),
        ({"executor": "x"}, "no executor 'x' in this installation; there are threads, ray"),
        ({"executor": 3}, "executor: expected the name of an executor, found 3 (int)"),
        ({"address": 3}, "address: expected the address of a cluster, or None, found 3 (int)"),
        ({"retries": 2}, "retries: expected a Retries, or None, found 2 (int)"),
        ({"overwrite": "no"}, "overwrite: expected True or False, found 'no' (str)"),
        ({"shard": "1/2"}, "shard: expected a Shard, or None, found '1/2' (str)"),
        ({"cache": 3}, "cache: expected the path of a folder, or None, found 3 (int)"),
        ({"control": 5}, "control: expected a RunControl, or None, found 5 (int)"),
        ({"control": 0}, "control: expected a RunControl, or None, found 0 (int)"),
    ],
)
def test_wrong_arguments_are_refused_though_nothing_has_to_run(tmp_path, given, message):
    """The folder of the run is empty."""
    (tmp_path / "run").mkdir()
    with pytest.raises(UsageError) as refused:
        list(evaluate_run(**{"runs": tmp_path / "run", "cache": tmp_path / "cache", **given}))
    assert str(refused.value).startswith(message)
    assert not (tmp_path / "cache").exists()


def test_the_asynchronous_generator_refuses_a_wrong_control(tmp_path):
    async def read():
        return [outcome async for outcome in evaluate_run_async(tmp_path, control=5)]

    with pytest.raises(UsageError, match=r"control: expected a RunControl, or None, found 5 \(int\)"):
        asyncio.run(read())


@pytest.mark.parametrize(
    "make",
    [
        lambda: Shard(5, 2),
        lambda: Shard(0, 1),
        lambda: Shard(1, 0),
        lambda: Shard("1", 2),
        lambda: Shard(True, 2),
        lambda: Retries(-1),
        lambda: Retries("x"),
        lambda: Retries(1.5),
        lambda: Retries(wait_s=-1),
        lambda: Retries(max_wait_s=float("nan")),
    ],
)
def test_shards_and_retries_refuse_numbers_that_mean_nothing(make):
    with pytest.raises(UsageError, match="expected"):
        make()


@pytest.mark.parametrize("field", ["problem", "checkpoint", "environment", "path", "output", "run"])
def test_a_submission_refuses_fields_of_a_wrong_type(loose, field):
    with pytest.raises(UsageError, match=rf"^{field}: expected .*, found 3 \(int\)$"):
        replace(loose[0], **{field: 3})
