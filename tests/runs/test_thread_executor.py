"""Jobs in threads: results, cancellation and cleaning up."""

from __future__ import annotations

import gc
import os
import socket
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from slop_code.errors import ConfigError, InfrastructureError, UsageError
from slop_code.execution.cache import Cache
from slop_code.execution.processors import available_cpus
from slop_code.execution.progress_events import ProgressKind
from slop_code.execution.submission import tree_digest
from slop_code.runs.executors import executor_class
from slop_code.runs.executors.thread_executor import ThreadExecutor
from slop_code.runs.executors.worker import run_job
from slop_code.runs.jobs.job_records import JobRequest, Submission
from slop_code.runs.result_archive import read_archived_results
from tests.marks import in_long

STAYS = """
import socket
connection = socket.create_connection(("127.0.0.1", {port}), 50)
connection.settimeout(50)
connection.recv(1)
"""
TESTS = {"test_checkpoint_1.py": "def test_says(run):\n    assert run().stdout == 'hello\\n'\n"}


@pytest.fixture(scope="module")
def problem(make_problem, cache):
    return make_problem(TESTS)


@pytest.fixture
def work(problem, make_submission, environment_spec, need_bubblewrap):
    def make(code):
        need_bubblewrap()
        submission = make_submission({"main.py": code})
        spec = environment_spec({"network": "full"})  # so that a submission can tell us where it is
        return JobRequest(
            problem=problem,
            checkpoint="checkpoint_1",
            environment=spec,
            submission=submission,
            digest=tree_digest(submission),
        )

    return make


def test_the_executor_is_registered_as_threads():
    assert executor_class("threads") is ThreadExecutor


@pytest.mark.parametrize("sandbox", ["docker", *in_long("bubblewrap")])
def test_a_missing_python_is_known_before_any_evaluation(
    need, make_problem, environment_spec, tmp_path, cache, sandbox
):
    need(sandbox)
    problem = make_problem(TESTS, config={"requires_python": ">=3.99"})
    spec = environment_spec({}, sandbox=sandbox)
    wanted = Submission(problem=problem, checkpoint=problem.checkpoint(1), environment=spec, path=tmp_path)
    executor = ThreadExecutor(1, None, lambda _: None, cache)
    try:
        with pytest.raises(ConfigError, match=r"no Python .* fits >=3\.99"):
            executor.prepare([wanted])
    finally:
        executor.close()


def test_an_address_is_rejected():
    with pytest.raises(UsageError, match="a cluster needs ray"):
        ThreadExecutor(None, "head:6379", print, Cache.default())


def test_slots_default_to_the_available_processors():
    executor = ThreadExecutor(None, None, print, Cache.default())
    executor.close()
    assert executor.slots == available_cpus() <= (os.cpu_count() or 1)
    one = min(os.sched_getaffinity(0))
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {one})
    try:
        assert available_cpus() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_each_job_gives_its_result(work):
    events = []
    executor = ThreadExecutor(2, None, events.append, Cache.default())
    futures = [executor.submit(work(f"print({word!r})")) for word in ("hello", "bye")]
    done = [future.result(200) for future in futures]
    executor.close()
    assert [one.facts.state for one in done] == ["evaluated", "evaluated"]
    assert [one.facts.passed["all-cases"] for one in done] == [True, False]
    assert [read_archived_results(one.archive).passed["all-cases"] for one in done] == [True, False]
    assert ProgressKind.RUN_TESTS in [event.kind for event in events]


def test_one_that_runs_and_one_that_waits_are_stopped_and_others_go_on(work):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(100)
        executor = ThreadExecutor(1, None, lambda _: None, Cache.default())
        runs = executor.submit(work(STAYS.format(port=server.getsockname()[1])))
        waits, goes_on = executor.submit(work("print('bye')")), executor.submit(work("print('hello')"))
        subject, _ = server.accept()
        executor.stop(waits)
        executor.stop(runs)
        stopped = [runs.result(100), waits.result(100)]
        with subject:
            subject.settimeout(100)
            assert subject.recv(1) == b"", "its process is gone"
        executor.stop(runs)
    assert [(done.facts.state, done.facts.reason) for done in stopped] == [
        ("not_evaluated", "stopped before its end")
    ] * 2
    assert [done.final for done in stopped] == [True, True]
    assert [done.archive for done in stopped] == [None, None]
    assert goes_on.result(100).facts.passed["all-cases"]
    executor.close()


def open_descriptors():
    """Without those that only wait for the garbage collector, such as those of an earlier test."""
    gc.collect()
    return set(os.listdir("/proc/self/fd"))


def test_no_descriptors_are_left(work):
    def evaluate(text):
        executor = ThreadExecutor(1, None, lambda _: None, Cache.default())
        executor.submit(work(text)).result(100)
        executor.close()

    evaluate("print('hello')")
    before = open_descriptors()
    evaluate("print('bye')")
    assert open_descriptors() <= before


def test_a_job_without_a_thread_leaves_nothing_open(work, monkeypatch):
    """Nothing is left open, and what it took all the same is not evaluated unseen."""

    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    events = []
    executor = ThreadExecutor(1, None, events.append, Cache.default())
    refused, good = work("print('bye')"), work("print('hello')")
    before = open_descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            executor.submit(refused)
    assert open_descriptors() <= before
    assert executor.submit(good).result(100).facts.passed["all-cases"]
    executor.close()
    assert [event.kind for event in events].count(ProgressKind.RUN_TESTS) == 1


def test_a_submission_that_changes_while_it_is_evaluated(work, tmp_path):
    """Nobody knows what was tested then."""
    given = work("print('hello')")

    def write(event):
        if event.kind is ProgressKind.RUN_TESTS:
            (given.submission / "more.py").write_text("")

    def folder():
        return Path(tempfile.mkdtemp(dir=tmp_path))

    done = run_job(given, Cache.default(), folder, write)
    assert (done.facts.state, done.final) == ("infrastructure_failure", False)
    assert "the submission changed while it was evaluated" in done.facts.reason
    assert run_job(replace(given, digest=""), Cache.default(), folder).facts.state == "evaluated"


@pytest.fixture
def wanted(problem, environment_spec, cache):
    """Submissions by what is wrong with them: the sandbox, the test tools, or nothing."""
    lonely = problem.model_copy(update={"test_dependencies": ["slop-code-has-no-such-package==1"]})
    engine = {"type": "docker", "docker": {"image": "x", "binary": "no-such-engine"}}
    about = {
        "sandbox": (problem, environment_spec(engine)),
        "tools": (lonely, environment_spec()),
        "nothing": (problem, environment_spec()),
    }

    def make(*names):
        return [
            Submission(problem=found, checkpoint=found.checkpoint(1), environment=spec, path="/nowhere")
            for found, spec in (about[name] for name in names)
        ]

    return make


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["sandbox"], "no-such-engine"),
        (["tools"], "slop-code-has-no-such-package"),
        (["sandbox", "sandbox"], "no-such-engine"),
        (["sandbox", "tools"], "no-such-engine"),
        (["sandbox", "nothing"], None),
        (["nothing", "tools"], None),
        (["nothing"], None),
        ([], None),
    ],
)
def test_a_machine_that_can_evaluate_nothing_says_so_at_once(wanted, need_bubblewrap, names, message):
    need_bubblewrap()
    executor = ThreadExecutor(1, None, lambda _: None, Cache.default())
    try:
        if message is None:
            executor.prepare(wanted(*names))
        else:
            with pytest.raises((InfrastructureError, ConfigError), match=message):
                executor.prepare(wanted(*names))
    finally:
        executor.close()
