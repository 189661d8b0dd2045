"""A real cluster of two nodes on loopback, each with a cache of its own; a job's files are gone once it is sent."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import slop_code
from slop_code import Retries, Submission, evaluate_run
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation import CorrectnessResults
from slop_code.execution.cache import Cache
from slop_code.execution.submission import tree_digest
from slop_code.runs.executors import executor_class
from slop_code.runs.executors.ray.ray_executor import RayExecutor
from slop_code.runs.jobs.job_records import JobRequest
from slop_code.runs.result_archive import read_archived_results
from tests.bridges.service_process import running_service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slop_code.evaluation import ProblemConfig
    from slop_code.execution import EnvironmentSpec
    from slop_code.runs.executors import Executor
    from slop_code.runs.jobs.job_records import JobResult

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]

DRIVER, OTHER, THIRD = "127.0.0.2", "127.0.0.3", "127.0.0.4"
PATIENCE_S = 600
BUSY = 2
"""Session folders of a job whose boxes are open: the job itself, with its files and its result, and the boxes."""

STORE = 80 << 20
OTHER_GROUPS = ("Functionality", "Error", "Regression")
TOOLS = ("uv", "tools", "probes")
SOON = {"health_check_initial_delay_ms": 5000, "health_check_period_ms": 300, "health_check_failure_threshold": 40}
"""A dead node is noticed after 12 s; one that starts slowly on a busy machine is not taken for dead."""
TESTS = """
    import os, stat
    from pathlib import Path

    def test_greets(run):
        assert run("x").stdout == Path(os.environ["SCBENCH_ASSET_GREETING"]).read_text() + "x\\n"

    def test_data(run):
        assert run("x").stdout.strip() == (Path(__file__).parent / "data" / "linked.txt").read_text()

    def test_never(run):
        assert run("x").stdout == ""
"""
GREETS = """
    import os, subprocess, sys
    said = subprocess.check_output(["./say", *sys.argv[1:]], text=True)
    print(open(os.environ["SCBENCH_ASSET_GREETING"]).read() + said.strip())
"""
LINGERS = "import time\ntime.sleep({})\n"


@pytest.fixture(scope="module", autouse=True)
def _need_ray() -> Iterator[None]:
    """The cluster has a token, so that nobody else on this machine can use it, and a temporary folder of its own.

    By default Ray uses /tmp/ray, which `Cluster` expects to exist. Paths of sockets in the folder have to be short.
    """
    missing = None if importlib.util.find_spec("ray") else "no Ray: `make test` installs it from requirements-test.lock"
    if missing and os.environ.get("CI") == "true":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="ray") as folder:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.delenv("RAY_ADDRESS", raising=False)
        yield


class SlowClock:
    """As the module `time`, with slower clocks: Ray gives a node 30 s to start, too short for a busy machine."""

    SLOWNESS = 5

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def monotonic(self) -> float:
        return time.monotonic() / self.SLOWNESS

    def time(self) -> float:
        return time.time() / self.SLOWNESS


@dataclass
class Nodes:
    """The driver's machine and another one; what each has in its cache."""

    cluster: Any
    own: Cache
    other: Cache
    node: Any

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def add(self, ip: str, variables: dict[str, str]) -> Any:
        settings = {"node_ip_address": ip, "num_cpus": 1, "object_store_memory": STORE, "env_vars": variables}
        return start(lambda: self.cluster.add_node(**settings, wait=True))


def start(node: Callable[[], Any]) -> Any:
    """Ray waits in vain for a raylet that ends while it starts, as happens on a busy machine; another one starts."""
    for _ in range(2):
        with contextlib.suppress(Exception):
            return node()
    return node()


def arrivals(cache: Cache) -> dict[str, int]:
    """Problems that came here, with what tells one folder from another in its place."""
    return {path.name: path.stat().st_ino for path in (cache.root / "arrivals").glob("[!.]*")}


def sessions(cache: Cache) -> list[str]:
    return sorted(path.name for path in (cache.root / "sessions").glob("*"))


def until(what: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def copy_of(cache: Cache, folder: Path) -> Cache:
    for part in TOOLS:
        if (cache.root / part).is_dir():
            shutil.copytree(cache.root / part, folder / part, symlinks=True)
    return Cache(folder)


@pytest.fixture(scope="module")
def nodes(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    from ray.cluster_utils import Cluster

    own, other = (copy_of(cache, tmp_path_factory.mktemp(name)) for name in ("own", "other"))
    head = {
        "node_ip_address": DRIVER, "num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False,
        "env_vars": {"SCBENCH_CACHE_DIR": str(own.root)}, "_system_config": SOON,
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for module in ("ray._private.node", "ray.cluster_utils"):
            patch.setattr(f"{module}.time", SlowClock())
        yield from started_nodes(start(lambda: Cluster(initialize_head=True, head_node_args=head)), own, other)


def started_nodes(cluster: Any, own: Cache, other: Cache) -> Iterator[Nodes]:
    try:
        nodes = Nodes(cluster, own, other, None)
        nodes.node = nodes.add(OTHER, {"SCBENCH_CACHE_DIR": str(other.root)})
        yield nodes
    finally:
        cluster.shutdown()


@pytest.fixture(scope="module")
def ray(nodes: Nodes) -> Iterator[Executor]:
    handler = signal.getsignal(signal.SIGTERM)
    executor = executor_class("ray")(None, nodes.address, lambda _: None, Cache.default())
    try:
        assert signal.getsignal(signal.SIGTERM) is handler
        yield executor
    finally:
        executor.close()


@pytest.fixture(scope="module")
def threads(cache: Cache) -> Iterator[Executor]:
    executor = executor_class("threads")(2, None, lambda _: None, cache)
    yield executor
    executor.close()


@pytest.fixture(scope="module")
def problem(make_problem: Callable[..., ProblemConfig]) -> ProblemConfig:
    config = {"static_assets": {"greeting": {"path": "shared/../greeting.txt"}}}
    files = {
        "greeting.txt": "hello ",
        "expected.txt": "hello x",
        "shared/README": "",
        "solutions/checkpoint_1/main.py": "",
    }
    made = make_problem({"test_checkpoint_1.py": TESTS}, config=config, files=files)
    (made.path / "tests" / "data").mkdir()
    (made.path / "tests" / "data" / "linked.txt").symlink_to("../../expected.txt")
    return made


@pytest.fixture
def make_work(
    problem: ProblemConfig,
    environment_spec: Callable[..., EnvironmentSpec],
    make_submission: Callable[..., Path],
    need_bubblewrap: Callable[[], None],
) -> Callable[..., JobRequest]:
    need_bubblewrap()

    def make(main: str, **keys: Any) -> JobRequest:
        folder = make_submission({"main.py": main, "scripts/say": "#!/bin/sh\necho $1\n"})
        (folder / "scripts" / "say").chmod(0o755)
        (folder / "say").symlink_to("scripts/say")
        about = {"problem": problem, "checkpoint": "checkpoint_1", "environment": environment_spec()}
        return JobRequest(**about, submission=folder, digest=tree_digest(folder), **keys)

    return make


def statuses(done: JobResult) -> dict[str, str]:
    assert done.facts.state == "evaluated", done.facts.reason
    assert done.archive is not None
    return {test.id: test.status for test in read_archived_results(done.archive).tests}


def test_the_same_results_as_in_threads_though_the_files_are_gone(
    ray: Executor, threads: Executor, nodes: Nodes, make_work: Callable[..., JobRequest], tmp_path: Path
) -> None:
    works = [make_work(main) for main in (GREETS, "print('bye')", "1 // 0", "")]
    here = [threads.submit(work) for work in works]
    expected = [future.result(PATIENCE_S) for future in here]
    copy = shutil.copytree(works[0].problem.path, tmp_path / "problem", symlinks=True)
    sent = [ray.submit(replace(work, problem=work.problem.at(copy))) for work in works]
    for folder in [copy, *(work.submission for work in works)]:
        shutil.rmtree(folder)
    found = [future.result(PATIENCE_S) for future in sent]
    assert [statuses(done) for done in found] == [statuses(done) for done in expected]
    assert statuses(found[0]) == {"test_greets": "passed", "test_data": "passed", "test_never": "failed"}
    assert [done.facts.digests for done in found] == [done.facts.digests for done in expected]
    assert arrivals(nodes.own).keys() == arrivals(nodes.other).keys()
    assert len(arrivals(nodes.own)) == 1


def test_a_problem_arrives_once_and_a_submission_goes_with_its_job(
    ray: Executor, nodes: Nodes, make_work: Callable[..., JobRequest]
) -> None:
    def jobs() -> None:
        for future in [ray.submit(make_work(f"print({number})")) for number in range(2)]:
            statuses(future.result(PATIENCE_S))

    jobs()
    before = [arrivals(nodes.own), arrivals(nodes.other)]
    jobs()
    assert [arrivals(nodes.own), arrivals(nodes.other)] == before
    assert sessions(nodes.own) + sessions(nodes.other) == []
    kept = [path.name for path in nodes.own.root.glob("arrivals/*/problem/*")]
    assert "config.yaml" in kept
    assert "solutions" not in kept


def test_what_is_told_to_stop_cleans_up_after_itself(
    ray: Executor, nodes: Nodes, make_work: Callable[..., JobRequest]
) -> None:
    running = [ray.submit(make_work(LINGERS.format(2000 + number))) for number in range(2)]
    queued = ray.submit(make_work(LINGERS.format(3000)))
    until(lambda: len(sessions(nodes.own)) == len(sessions(nodes.other)) == BUSY)
    for future in [queued, *running]:
        ray.stop(future)
    for future in [queued, *running]:
        done = future.result(PATIENCE_S)
        assert (done.facts.state, done.final) == ("not_evaluated", True)
        assert done.facts.reason == "stopped before its end"
    until(lambda: sessions(nodes.own) + sessions(nodes.other) == [])


def test_a_submission_that_changed_is_not_mistaken_for_the_planned_one(
    ray: Executor, make_work: Callable[..., JobRequest]
) -> None:
    work = make_work("print(1)")
    (work.submission / "main.py").write_text("print(2)")
    done = ray.submit(work).result(PATIENCE_S)
    assert done.facts.state == "infrastructure_failure"
    assert "did it change since?" in (done.facts.reason or "")


def test_a_submission_that_cannot_be_sent_by_its_own_fault_is_a_verdict(
    ray: Executor, make_work: Callable[..., JobRequest]
) -> None:
    work = make_work("print(1)")
    (work.submission / Path(*["d"] * 402)).mkdir(parents=True)
    work = replace(work, digest=tree_digest(work.submission))
    done = ray.submit(work).result(PATIENCE_S)
    assert set(statuses(done).values()) == {"failed"}
    results = read_archived_results(done.archive or b"")
    assert results.setup_failure == "set-up failed: the tree has folders nested more than 400 deep"
    assert results.provenance.digests.submission == work.digest


def test_more_weight_than_any_node_has_room_for(ray: Executor, make_work: Callable[..., JobRequest]) -> None:
    assert ray.slots == 2
    assert statuses(ray.submit(make_work("print(1)", weight=2)).result(PATIENCE_S))


def test_a_run_from_the_command_line_is_evaluated_on_ray(
    nodes: Nodes, cache: Cache, problem: ProblemConfig, make_work: Callable[..., JobRequest], tmp_path: Path
) -> None:
    """From the command line, which prints its own words alone and leaves the run's folder as it would anywhere."""
    snapshot = tmp_path / "run" / "greetings" / "checkpoint_1" / "snapshot"
    shutil.copytree(make_work(GREETS).submission, snapshot, symlinks=True)
    shutil.copytree(problem.path, tmp_path / "problems" / "greetings", symlinks=True)
    done = subprocess.run(
        [sys.executable, "-m", "slop_code", "eval", "run", "--executor", "ray", "--json"],
        cwd=tmp_path, env={**os.environ, "RAY_ADDRESS": nodes.address, "SCBENCH_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["schema_version"]
    printed = [line for line in done.stderr.splitlines() if not line.startswith("·")]
    assert printed[0] == "1 to evaluate"
    assert "NOT PASSED run/" in printed[1]
    assert "2/3" in printed[1]
    assert (snapshot.parent / "evaluation.json").is_file()
    assert not list((tmp_path / "cache").glob("tools/*"))


def test_a_reward_service_evaluates_on_the_nodes(
    nodes: Nodes, problem: ProblemConfig, need_bubblewrap: Callable[[], None], tmp_path: Path
) -> None:
    need_bubblewrap()
    folder = shutil.copytree(problem.path, tmp_path / "problems" / "greeting", symlinks=True)
    (folder / "tests" / "data" / "own.txt").write_text("")  # so that it is another problem than before
    before = arrivals(nodes.own).keys() | arrivals(nodes.other).keys()
    options = ("--executor", "ray", "--ray-address", nodes.address)
    with (
        running_service(tmp_path / "problems", tmp_path / "state", *options) as service,
        service.client(timeout=PATIENCE_S) as client,
    ):
        assert client.get("/ready").json()["workers"] == 2
        files = {"main.py": f"print('hello x')  # {time.time_ns()}"}
        order = {"problem": "greeting", "checkpoint": 1, "submission": {"files": files}}
        answers = [client.post("/evaluate", json=order).json() for _ in range(2)]
        assert [(answer["state"], answer["source"]) for answer in answers] == [
            ("evaluated", "evaluated"), ("evaluated", "cached"),
        ]  # fmt: skip
        assert answers[0]["pass_counts"] == answers[1]["pass_counts"] == {"Core": 2, **dict.fromkeys(OTHER_GROUPS, 0)}
        assert service.end() == 0
    assert (arrivals(nodes.own).keys() | arrivals(nodes.other).keys()) > before


def test_a_node_of_another_version_is_refused(ray: Executor, nodes: Nodes, tmp_path: Path) -> None:
    shutil.copytree(Path(slop_code.__file__).parent, tmp_path / "slop_code")
    (tmp_path / "slop_code" / "_version.py").write_text('__version__ = "0.0.7"\n')
    node = nodes.add(THIRD, {"PYTHONPATH": str(tmp_path)})
    try:
        with pytest.raises(UsageError, match=rf"{THIRD}\): it has slop-code 0\.0\.7, expected {slop_code.__version__}"):
            executor_class("ray")(None, nodes.address, lambda _: None, Cache.default())
    finally:
        nodes.cluster.remove_node(node, allow_graceful=False)
    import ray as module

    until(lambda: sum(found["Alive"] for found in module.nodes()) == 2)


def test_a_job_that_cannot_be_sent_leaves_nothing(ray: Executor, make_work: Callable[..., JobRequest]) -> None:
    """Its submission would be held for the rest of the run."""
    future = ray.submit(replace(make_work("print(1)"), checkpoint=threading.Lock()))  # type: ignore[arg-type]
    assert isinstance(future.exception(PATIENCE_S), InfrastructureError)
    assert statuses(ray.submit(make_work("print(2)")).result(PATIENCE_S))
    assert isinstance(ray, RayExecutor)
    assert (ray._submissions, +ray._reference_counts, ray._running) == ({}, {}, {})


def test_a_job_that_ends_in_an_odd_way_comes_to_an_end(ray: Executor, make_work: Callable[..., JobRequest]) -> None:
    assert isinstance(ray, RayExecutor)
    ended: Future[JobResult] = Future()
    ended.cancel()
    ended.set_running_or_notify_cancel()
    future: Future[JobResult] = Future()
    ray._settle(future, make_work("print(1)"), ended)
    assert isinstance(future.exception(PATIENCE_S), InfrastructureError)


def test_a_node_that_dies_in_the_middle(
    ray: Executor, nodes: Nodes, make_work: Callable[..., JobRequest], tmp_path: Path
) -> None:
    """Its job is done on another one, and the result says that it was lost before."""
    works = [make_work(f"{LINGERS.format(1)}print('hello x')\n# {number}") for number in range(2)]
    given = [
        Submission(
            problem=work.problem, checkpoint=work.problem.checkpoint(1), environment=work.environment,
            path=work.submission, output=tmp_path / str(number),
        )
        for number, work in enumerate(works)
    ]  # fmt: skip
    with ThreadPoolExecutor(1) as pool:
        run = evaluate_run(given, executor="ray", retries=Retries(times=1), cache=tmp_path / "cache")
        reading = pool.submit(list, run)
        until(lambda: len(sessions(nodes.own)) == len(sessions(nodes.other)) == BUSY)
        nodes.cluster.remove_node(nodes.node, allow_graceful=False)
        found = reading.result(PATIENCE_S)
    assert [outcome.facts.state for outcome in found] == ["evaluated"] * 2
    results = [CorrectnessResults.load(one.output / "evaluation.json") for one in given if one.output]
    for result in results:
        assert {test.id: test.status for test in result.tests} == {
            "test_greets": "passed", "test_data": "passed", "test_never": "failed",
        }  # fmt: skip
    assert sorted(len(result.attempts) for result in results) == [0, 1]
    [lost] = [attempt for result in results for attempt in result.attempts]
    assert lost.reason.startswith("the executor lost this job: ")
    assert sessions(nodes.own) == []
    assert sessions(nodes.other) != [], "it was not in the middle"
