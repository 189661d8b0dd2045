"""One contract for every sandbox, and what strict isolation adds to it; `problems/boxes` has the tests inside."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import shutil
import socket
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from slop_code.evaluation import ProblemConfig
from slop_code.evaluation.grading import MEMORY_LIMIT_ENDED_BOX
from slop_code.execution.submission import tree_digest
from tests.conftest import OTHER_ENGINE
from tests.marks import in_long

FOLDER = Path(__file__).parents[1] / "problems" / "boxes"
SUBJECT = FOLDER / "submission"
MARK = f"mark-{uuid.uuid4().hex}"
APART = ["bubblewrap", "docker", *in_long("runsc", *OTHER_ENGINE)]
SANDBOXES = ["none", *APART]
NOT_IN_GVISOR = {
    "test_the_supervisor_of_the_box_cannot_be_looked_into": "anyone may read the variables and links of process 1",
    "test_no_capabilities_and_no_way_to_any": "/proc/self/status has no line NoNewPrivs",
    "test_no_descriptor_but_the_three": "ls cannot read /proc/self/fd",
}
"""Walls that are built in another way by this kernel, or that cannot be seen in it."""

LIMITS = {"memory": "300M", "processes": 50, "disk": "40M", "output": "8M"}
UNSEEN_LIMITS = {"memory": "64M", "disk": "16M"}


def inner_tests(checkpoint: str) -> list[str]:
    tree = ast.parse((FOLDER / "tests" / f"test_{checkpoint}.py").read_text())
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def check(results, name: str) -> None:
    """The inner test of this name, with all its parameters, passed."""
    assert results.infrastructure_failure_reason is None
    mine = [test for test in results.tests if test.id.partition("[")[0] == name]
    failures = [f"{test.id}: {test.failure_message}" for test in mine if test.status != "passed"]
    assert mine
    assert not failures, "\n".join(failures)


@pytest.fixture(scope="module")
def boxes():
    return ProblemConfig.from_yaml(FOLDER)


@pytest.fixture(scope="module", params=SANDBOXES)
def contract(request, boxes, evaluate, make_submission):
    submission = make_submission({"main.py": (SUBJECT / "main.py").read_text(), "mark": MARK})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLOP_CODE_TEST_SECRET", "of the host")
        results = evaluate(boxes, submission, "contract", sandbox=request.param)
    used = "docker" if request.param in OTHER_ENGINE else request.param
    assert used in (results.isolation["sandbox"], results.isolation.get("runtime"))
    return results


@pytest.mark.parametrize("name", inner_tests("contract"))
def test_every_sandbox_fulfils_the_contract(contract, name):
    check(contract, name)


def test_nothing_outlives_the_evaluation(contract):
    left = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if MARK.encode() in (entry / "cmdline").read_bytes():
                left.append(entry.name)
    assert left == []


@pytest.fixture(scope="module", params=APART)
def walls(request, boxes, evaluate, cache, tmp_path_factory):
    submission = tmp_path_factory.mktemp("submission") / "given"
    output = tmp_path_factory.mktemp("output")
    shutil.copytree(SUBJECT, submission)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        paths = {
            "problem": boxes.path,
            "home": Path.home(),
            "cache": cache.root,
            "output": output,
            "submission": submission,
            "source": Path(__file__).parents[2] / "src",
            "tmp": tmp_path_factory.getbasetemp(),
        }
        host = {**{name: str(path) for name, path in paths.items()}, "port": listener.getsockname()[1]}
        (submission / "host.json").write_text(json.dumps(host))
        results = evaluate(boxes, submission, "walls", sandbox=request.param, output_dir=output)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    return results


@pytest.mark.parametrize("name", inner_tests("walls"))
def test_judge_and_subject_are_isolated(walls, name):
    if walls.isolation.get("runtime") == "runsc" and name in NOT_IN_GVISOR:
        pytest.skip(NOT_IN_GVISOR[name])
    check(walls, name)


@pytest.fixture(scope="module", params=APART)
def limits(request, boxes, evaluate):
    return evaluate(boxes, SUBJECT, "limits", sandbox=request.param, environment={"limits": LIMITS})


@pytest.mark.parametrize("name", inner_tests("limits"))
def test_limits_are_enforced(limits, name):
    check(limits, name)


def test_memory_that_was_taken_at_a_stroke_is_recorded_as_the_memory_limit(limits):
    (test,) = (test for test in limits.tests if test.id == "test_memory_at_a_stroke")
    assert [(struck.kind, struck.limit) for struck in test.limits] == [("memory", 300 << 20)]


@pytest.mark.parametrize("sandbox", ["bubblewrap", "docker"])
def test_the_kernel_stops_what_the_watch_does_not_see(boxes, evaluate, sandbox):
    results = evaluate(boxes, SUBJECT, "unseen", sandbox=sandbox, environment={"limits": UNSEEN_LIMITS})
    if not results.isolation["control_groups"]:
        pytest.skip("no control groups can be made here")
    assert results.infrastructure_failure_reason is None
    (test,) = results.tests
    ended = test.status == "failed" and test.failure_message == MEMORY_LIMIT_ENDED_BOX
    assert test.status == "passed" or ended
    allowed = [[("memory", 64 << 20)]]
    if sandbox == "docker" and not ended and not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        # In version 1, Linux 6.18 does not count what a limit on memory and swap together refuses.
        allowed.append([("out_of_memory", None)])
    assert [(struck.kind, struck.limit) for struck in test.limits] in allowed


GROUP_LIMIT = """
import os
groups = {names: path.strip() for _, names, path in (line.split(":", 2) for line in open("/proc/self/cgroup"))}
mount = "/sys/fs/cgroup"
files = [f"{mount}/memory{groups.get('memory', '')}/memory.limit_in_bytes", f"{mount}/memory/memory.limit_in_bytes"]
files += [f"{mount}{groups.get('', '')}/memory.max", f"{mount}/memory.max"]
print(next(open(file).read() for file in files if os.path.exists(file)))
"""


@pytest.mark.parametrize("sandbox", ["docker", *in_long(*OTHER_ENGINE)])
def test_an_engine_s_control_groups_are_claimed_where_the_submission_is_in_one(
    evaluate, make_problem, make_submission, sandbox
):
    """Rootless Docker on cgroup v1 ignores limits without a warning."""
    hard = (300 << 20) + 3 * (40 << 20)
    problem = make_problem({"test_checkpoint_1.py": f"def test_limit(run):\n    assert int(run().stdout) == {hard}\n"})
    submission = make_submission({"main.py": GROUP_LIMIT})
    results = evaluate(problem, submission, sandbox=sandbox, environment={"limits": LIMITS})
    assert results.infrastructure_failure_reason is None
    in_group = [test.status for test in results.tests] == ["passed"]
    claimed = results.isolation
    assert (claimed["control_groups"], "cpus" in claimed["limits"]) == (in_group, in_group)
    assert ("it enforces no limit on memory, processes, cpus" in claimed.get("warning", "")) is not in_group


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_the_submission_stays_as_it_was(boxes, evaluate, make_submission, sandbox):
    submission = make_submission({"main.py": (SUBJECT / "main.py").read_text(), "data/a": "a", "data/deep/b": "b"})
    (submission / "link").symlink_to("data/a")
    (submission / "data/a").chmod(0o640)
    before = tree_digest(submission), [os.lstat(path) for path in sorted(submission.rglob("*"))]
    results = evaluate(boxes, submission, "vandal", sandbox=sandbox)
    check(results, "test_it_may_do_as_it_likes_with_its_copy")
    after = tree_digest(submission), [os.lstat(path) for path in sorted(submission.rglob("*"))]
    kept = [[(info.st_ino, info.st_mode, info.st_mtime_ns) for info in infos] for _, infos in (before, after)]
    assert before[0] == after[0]
    assert kept[0] == kept[1]


@pytest.mark.parametrize("sandbox", APART)
def test_two_evaluations_use_one_port_at_once(sandbox, evaluate, make_problem, make_submission):
    problem = make_problem(
        {
            "test_checkpoint_1.py": """
            import socket, subprocess

            def test_it_answers(entrypoint):
                with subprocess.Popen(entrypoint, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as server:
                    assert server.stdout.readline() == b"ready\\n"
                    for _ in range(200):
                        with socket.create_connection(("127.0.0.1", 8080), timeout=20) as peer:
                            assert peer.recv(100) == open("name", "rb").read()
                    server.kill()
            """
        }
    )
    server = """
    import socket
    listener = socket.create_server(("127.0.0.1", 8080))
    print("ready", flush=True)
    while True:
        listener.accept()[0].sendall(open("name", "rb").read())
    """
    submissions = [make_submission({"main.py": server, "name": name}) for name in ("one", "two", "three", "four")]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda submission: evaluate(problem, submission, sandbox=sandbox), submissions))
    for result in results:
        check(result, "test_it_answers")
