"""The queue and the routes of the reward service, with a scheduler that starts nothing or fails."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import gc
import json
import os
import threading
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from slop_code.bridges.service import durable_jobs, service_queue
from slop_code.bridges.service.durable_jobs import DurableJobs
from slop_code.bridges.service.queue_records import QueueFullError
from slop_code.bridges.service.request_bounds import MAX_BODIES_IN_MEMORY, RequestLimits
from slop_code.bridges.service.server import HOST_NAMES
from slop_code.bridges.service.service_records import EvaluateRequest
from slop_code.errors import InfrastructureError
from slop_code.evaluation.reward_values import refused_rewards
from slop_code.execution.cache import Cache
from slop_code.runs.jobs.job_feed import JobFeed
from tests.bridges.service_inside import ServiceInside, idle_scheduler, open_queue
from tests.bridges.service_process import request_for, tar_of, wait_until
from tests.conftest import write_files

MAX_BODY = 1 << 18
LONG = "x" * 100_000


@pytest.fixture
def queue(monkeypatch, service_problems, tmp_path):
    monkeypatch.setattr(service_queue, "run_jobs", idle_scheduler)
    with open_queue(service_problems, tmp_path / "cache") as queue:
        yield queue


@pytest.fixture
def service(queue, tmp_path):
    service = ServiceInside(queue, tmp_path / "state", RequestLimits(max_bytes=MAX_BODY, hosts=HOST_NAMES))
    with contextlib.closing(service.durable):
        yield service


@pytest.fixture
def durable(queue, tmp_path):
    with contextlib.closing(DurableJobs(tmp_path / "state", queue)) as durable:
        yield durable


def request(program="print()", **fields):
    return EvaluateRequest.model_validate(request_for(program, **fields))


def body(**fields):
    return json.dumps(request_for(**fields)).encode()


async def until(holds):
    while not holds():
        await asyncio.sleep(0.01)


def requests_in_memory():
    gc.collect()
    return {id(each): each for each in gc.get_objects() if isinstance(each, EvaluateRequest)}


@pytest.mark.e2e
def test_a_waiting_durable_job_keeps_nothing_of_its_request(durable):
    asked = request(durable=True)
    job, alive = durable.accept(asked), weakref.ref(asked)
    del asked
    gc.collect()
    assert alive() is None
    assert durable.get(job).state == "queued"


@pytest.mark.e2e
@pytest.mark.parametrize("kind", ["files", "tar"])
def test_waiting_requests_keep_nothing_of_their_bodies(service, kind):
    """Bodies are bounded while they are in memory, and requests that wait by --queue alone."""

    async def send_all():
        sent = []
        earlier = requests_in_memory()  # which keeps them, so that no other object gets their ids
        tracemalloc.start()
        for number in range(4 * MAX_BODIES_IN_MEMORY):
            sent.append(service.send("POST", "/evaluate", large_body(kind, number)))
            await until(lambda: sent[-1].waiting or sent[-1].messages)
        await until(lambda: requests_in_memory().keys() <= earlier.keys())
        kept = [block.size for block in tracemalloc.take_snapshot().traces if block.size > MAX_BODY // 4]
        assert [each.text for each in sent if each.messages] == []
        assert len(kept) < MAX_BODIES_IN_MEMORY, kept
        for each in sent:
            each.task.cancel()
        await asyncio.wait([each.task for each in sent])

    try:
        asyncio.run(send_all())
    finally:
        tracemalloc.stop()


def large_body(kind, number):
    """Of more than half of the largest size."""
    program = f"#{number}{'#' * (MAX_BODY * 5 // 8)}"
    if kind == "files":
        return body(program=program)
    packed = base64.b64encode(tar_of({"main.py": program}, mode="w")).decode()
    return json.dumps({**request_for(), "submission": {"tar": packed}}).encode()


def test_an_unpacked_submission_and_its_result_share_a_session_folder(queue, tmp_path):
    evaluation = queue.submit(request())
    [session] = Cache(tmp_path / "cache").sessions.iterdir()
    target = evaluation.job.targets[0]
    assert (target.path.parent, target.output.parent) == (session, session)


def test_a_job_that_cannot_be_queued_at_the_start_is_queued_when_it_is_asked_for(queue, durable, tmp_path):
    job = "a" * 32
    write_files(tmp_path / "state", {f"{job}.request.json": json.dumps(request_for(durable=True))})
    sessions = Cache(tmp_path / "cache").sessions
    write_files(sessions.parent, {sessions.name: ""})
    assert durable.resume() == (1, 0)
    for _ in range(2):
        with pytest.raises(InfrastructureError, match="sessions"):
            durable.get(job)
    assert not (tmp_path / f"state/{job}.result.json").exists()
    sessions.unlink()
    assert durable.get(job).state == "queued"
    assert queue.counts() == (1, 0)


def test_a_job_that_cannot_be_read_at_the_start_is_queued_when_it_is_asked_for(queue, durable, monkeypatch, tmp_path):
    job = "a" * 32
    write_files(tmp_path / "state", {f"{job}.request.json": json.dumps(request_for(durable=True))})

    def too_many(_path, _limit):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr("slop_code.bridges.service.durable_jobs.read_bounded", too_many)
        assert durable.resume() == (1, 0)
        with pytest.raises(InfrastructureError, match="Too many open files; ask again"):
            durable.get(job)
    assert durable.get(job).state == "queued"
    assert queue.counts() == (1, 0)


def test_results_are_counted_when_they_are_stored_and_when_they_are_deleted(durable, monkeypatch, tmp_path):
    """Not only when old ones are looked for, once a minute."""
    monkeypatch.setattr(durable_jobs, "MAX_RESULTS", 2)
    durable.cancel(durable.accept(request()))  # which counts what is there
    jobs = ["a" * 32, "b" * 32]
    unknown = json.dumps(request_for(problem="gone", durable=True))
    write_files(tmp_path / "state", {f"{job}.request.json": unknown for job in jobs})
    assert durable.resume() == (2, 0)
    with pytest.raises(QueueFullError, match="2 results are kept; delete jobs that you fetched"):
        durable.accept(request())
    assert durable.cancel(jobs[0])
    durable.accept(request())


class NotedLock:
    """A lock with an event for when a thread has to wait for it."""

    def __init__(self, waited):
        self.lock, self.waited = threading.Lock(), waited

    def __enter__(self):
        if not self.lock.acquire(blocking=False):
            self.waited.set()
            self.lock.acquire()

    def __exit__(self, *error):
        self.lock.release()


@pytest.mark.e2e
def test_a_scheduler_that_fails_while_a_job_is_added_runs_it_or_loses_it(monkeypatch, service_problems, tmp_path):
    fail, dropping, jobs = threading.Event(), threading.Event(), []

    def failing_once(_jobs, context):
        if not fail.is_set():
            fail.wait()
            raise OSError("the disk is full")
        with context.control.wake_queue() as changed:
            while not context.control.finishing:
                jobs.extend(context.feed.take()[0])
                changed.get()
        yield from ()

    def add(feed, job):
        fail.set()
        assert dropping.wait(60)  # it waits for the queue's lock, or has none and drops what is there
        original_add(feed, job)

    def take(feed):
        jobs_and_cancelled = original_take(feed)
        dropping.set()
        return jobs_and_cancelled

    original_add, original_take = JobFeed.add, JobFeed.take
    monkeypatch.setattr(JobFeed, "add", add)
    monkeypatch.setattr(JobFeed, "take", take)
    monkeypatch.setattr(service_queue, "run_jobs", failing_once)
    with open_queue(service_problems, tmp_path) as queue:
        monkeypatch.setattr(queue, "_lock", NotedLock(dropping))
        evaluation = queue.submit(request())
        assert evaluation.ended.result(60).state == "infrastructure_failure"
        monkeypatch.setattr(JobFeed, "add", original_add)
        following = queue.submit(request("print(2)"))
        wait_until(lambda: jobs)
        assert jobs == [following.job]


def test_an_evaluation_whose_folders_cannot_be_removed_has_an_outcome(queue):
    evaluation = queue.submit(request())

    def fail():
        raise RecursionError

    evaluation.folders.callback(fail)
    queue.close()
    assert evaluation.ended.result(0).cancelled


def test_a_request_that_the_shutdown_cancels_is_an_infrastructure_failure(service):
    async def shut_down():
        sent = service.send("POST", "/evaluate", body())
        await until(lambda: sent.waiting)
        await asyncio.to_thread(service.queue.close)
        await sent.task
        assert sent.status == 503
        assert (sent.json()["state"], sent.json()["reward"]) == ("infrastructure_failure", None)
        assert sent.json()["reason"] == "the service is shutting down; send it again"
        late = await service.ask("POST", "/evaluate", body())
        assert (late.status, late.json()["error"]) == (503, "the service is shutting down; send it again")

    asyncio.run(shut_down())


def test_submissions_that_are_unpacked_hold_up_no_other_answers(service, monkeypatch):
    unpacking, free = threading.Event(), threading.Event()

    def unpack(_queue, _request):
        unpacking.set()
        free.wait()
        raise InfrastructureError("free")

    monkeypatch.setattr(service_queue.ServiceQueue, "submit", unpack)

    async def ask():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        sent = service.send("POST", "/evaluate", body())
        await until(unpacking.is_set)
        try:
            async with asyncio.timeout(60):
                return (await service.ask("GET", f"/jobs/{'0' * 32}")).status
        finally:
            free.set()
            await sent.task

    assert asyncio.run(ask()) == 404


@pytest.mark.parametrize("server", [None, ("/run/socket", None)])
def test_a_request_by_a_unix_socket_needs_no_host(service, server):
    """Older servers do not name the socket."""
    assert asyncio.run(service.ask("GET", "/health", server=server)).status == 200
    assert asyncio.run(service.ask("GET", "/health", server=("127.0.0.1", 8080))).status == 421


@pytest.mark.parametrize(
    ("parameters", "status", "words"),
    [
        ("durable=1", 202, "queued"),
        ("durable=True", 202, "queued"),
        ("durable=yes", 422, "durable: expected 1, true, 0 or false"),
        ("durable=2", 422, "durable: expected 1, true, 0 or false"),
        ("output=x", 422, "unknown parameters: output; known are problem, checkpoint, environment, policy, tests"),
    ],
)
def test_parameters_of_an_archive(service, parameters, status, words):
    target = f"/evaluate?problem=adding&checkpoint=1&{parameters}"
    answer = asyncio.run(service.ask("POST", target, tar_of({}), content_type="Application/X-Tar; a=b"))
    assert answer.status == status, answer.text
    assert words in answer.text


@pytest.mark.e2e
@pytest.mark.parametrize(
    "fields",
    [
        {"problem": LONG},
        {"checkpoint": LONG},
        {"environment": LONG},
        {"policy": LONG},
        {"submission": {"path": LONG}},
        {"tests": [LONG]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_an_error_repeats_no_long_text(queue, tmp_path, fields):
    service = ServiceInside(queue, tmp_path / "state", RequestLimits())
    with contextlib.closing(service.durable):
        answer = asyncio.run(service.ask("POST", "/evaluate", json.dumps({**request_for(), **fields}).encode()))
    assert answer.status == 422
    assert len(answer.text) < 500


def test_nemo_gym_gets_a_reward_of_0_for_a_refused_submission_and_wrong_rows_are_counted(service):
    row = {"response": {"id": "r"}, "verifier_metadata": {**request_for(), "submission": {"files": {"../x": ""}}}}

    async def ask():
        answer = await service.ask("POST", "/verify", json.dumps(row).encode())
        assert answer.status == 200, answer.text
        reason = "submission: '../x': it leads outside of the folder"
        rewards = {"reward": 0.0, "reward_components": refused_rewards()}
        assert answer.json() == {**row, **rewards, "refused": reason}
        wrong = {"verifier_metadata": request_for(durable=True)}
        assert (await service.ask("POST", "/verify", json.dumps(wrong).encode())).status == 422
        metrics = (await service.ask("GET", "/metrics")).text
        assert 'slop_code_refused_total{status="422"} 1.0' in metrics

    asyncio.run(ask())
