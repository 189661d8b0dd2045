"""Usage of each test, and the limits that struck, in real boxes."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path

import pytest

from slop_code.execution.bubblewrap import bubblewrap_sandbox
from slop_code.execution.bubblewrap.cgroups import can_limit_cpus, control_groups
from tests.c_compiler import compile_c
from tests.marks import in_long

SANDBOXES = pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker")])

TESTS = """
import subprocess

import pytest


def test_nothing():
    pass


def test_work(run):
    assert run("work").stdout == "done"


def test_hidden_in_a_grandchild(run):
    assert run("grandchild").stdout == "done"


def test_child_that_nobody_waits_for(run):
    assert run("unwaited").stdout == "done"


def test_a_call_that_is_killed(run):
    with pytest.raises(subprocess.TimeoutExpired):
        run("for_ever", timeout=2)


def test_nothing_again():
    pass


def test_timeout(run):
    run("sleep", timeout=3)


def test_server_timeout(server):
    server("sleep", timeout=3)


def test_mapped_files(run):
    assert [run("mapped_files").stdout for _ in range(5)] == ["done"] * 5


def test_workers(run):
    assert run("workers").stdout == "done"


def test_memory(run):
    assert run("memory").returncode == 0


def test_processes(run):
    assert run("processes").returncode == 0


def test_disk(run):
    assert run("disk").returncode == 0


def test_full_disk(run):
    assert run("fail").returncode == 0


def test_output(run):
    assert run("output").returncode == 0
"""

SUBMISSION = """
import mmap
import os
import signal
import subprocess
import sys
import time

what = sys.argv[1]
if what in ("work", "grandchild") and what != sys.argv[-1] or what == "work":
    held = bytearray(64 << 20)
    with open("written", "wb") as file:
        file.write(bytes(3 << 20))
    while time.process_time() < 0.3:
        pass
elif what == "grandchild":
    subprocess.run([sys.executable, __file__, "grandchild", "below"], check=True)
if what == "unwaited":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if os.fork() == 0:
        while time.process_time() < 1:
            pass
        os._exit(0)
    try:
        os.wait()
    except ChildProcessError:
        pass
while what == "for_ever":
    pass
if what == "sleep":
    time.sleep(1000)
if what == "mapped_files":
    with open("/proc/self/maps") as maps:
        libraries = {line.split()[-1] for line in maps if ".so" in line}
    with open(max(libraries, key=os.path.getsize), "rb") as file:
        size, flags = os.fstat(file.fileno()).st_size, mmap.MAP_PRIVATE | mmap.MAP_POPULATE
        held = [mmap.mmap(file.fileno(), 0, flags, mmap.PROT_READ) for _ in range(1 + (160 << 20) // size)]
    os.write(1, b"done")
    os._exit(0)  # at once
if what == "workers":
    held = bytearray(b"x" * (40 << 20))
    for _ in range(4):
        if os.fork() == 0:
            time.sleep(1)
            os._exit(held[-1] != ord("x"))
    if any(os.wait()[1] for _ in range(4)):
        sys.exit(1)
if what == "memory":
    held = []
    while True:
        held.append(bytearray(1 << 20))
if what == "processes":
    children = [subprocess.Popen(["sleep", "1000"]) for _ in range(40)]
if what == "disk":
    with open("large", "wb") as file:
        while True:
            file.write(bytes(1 << 20))
            file.flush()
if what == "fail":
    sys.exit(1)
if what == "output":
    print("x" * (3 << 20))
print("done", end="")
"""

LIMITS = {"memory": "96M", "processes": 30, "disk": "16M", "output": "1M"}


@pytest.fixture(scope="module")
def results(make_problem, make_submission, evaluate):
    evaluated = {}

    def of(sandbox, limits):
        if (sandbox, limits) not in evaluated:
            problem = make_problem({"test_checkpoint_1.py": TESTS})
            environment = {"limits": LIMITS} if limits else {}
            result = evaluate(
                problem, make_submission({"main.py": SUBMISSION}), sandbox=sandbox, environment=environment
            )
            assert result.infrastructure_failure_reason is None
            evaluated[sandbox, limits] = {test.id: test for test in result.tests}
        return evaluated[sandbox, limits]

    return of


@SANDBOXES
def test_a_test_records_what_its_calls_used(results, sandbox):
    tests = results(sandbox, True)
    for name in ("test_work", "test_hidden_in_a_grandchild"):
        usage = tests[name].usage
        assert 0.3 <= usage.cpu_s < 25
        assert usage.memory_bytes >= 64 << 20
        assert 3 << 20 <= usage.written_bytes < 8 << 20
        assert 3 << 20 <= usage.disk_bytes < 8 << 20
        assert 1 <= usage.processes <= 30
        assert tests[name].limits == []
    assert tests["test_a_call_that_is_killed"].usage.cpu_s + tests["test_a_call_that_is_killed"].usage.wait_s > 1


@SANDBOXES
def test_a_child_that_nobody_waits_for_counts(results, sandbox):
    """With SIGCHLD ignored, the kernel adds the processor time of a child, here a second, to no other process."""
    test = results(sandbox, True)["test_child_that_nobody_waits_for"]
    assert test.status == "passed"
    assert test.usage.cpu_s > 0.3


@SANDBOXES
def test_the_next_test_starts_from_zero(results, sandbox):
    for name in ("test_nothing", "test_nothing_again"):
        usage = results(sandbox, True)[name].usage
        assert usage.memory_bytes < 64 << 20
        assert usage.written_bytes < 1 << 20
        assert usage.cpu_s < results(sandbox, True)["test_a_call_that_is_killed"].usage.cpu_s


@SANDBOXES
def test_a_timeout_is_recorded_with_its_limit(results, sandbox):
    tests = results(sandbox, True)
    found = {
        name: (test.timeout.kind, test.timeout.limit_s) for name, test in tests.items() if test.timeout is not None
    }
    assert found == {"test_timeout": ("call", 3), "test_server_timeout": ("call", 3)}
    assert "expected: connections are taken on port" in tests["test_server_timeout"].failure_message


@SANDBOXES
@pytest.mark.parametrize(
    ("kind", "limit"), [("memory", 96 << 20), ("processes", 30), ("disk", 16 << 20), ("output", 1 << 20)]
)
def test_a_limit_that_struck_is_recorded(results, sandbox, kind, limit):
    test = results(sandbox, True)[f"test_{kind}"]
    assert test.status == "failed"
    assert (kind, limit) in [(struck.kind, struck.limit) for struck in test.limits]
    assert kind != "disk" or 15 << 20 <= test.usage.disk_bytes <= limit + (1 << 20), (
        "looked at when the call ends, if not before"
    )
    calls = [struck.call for struck in test.limits if struck.kind == kind and struck.call is not None]
    assert calls == [f"python main.py {kind}"] or (kind == "processes" and not calls)


@SANDBOXES
def test_a_test_that_finds_the_disk_full_has_not_filled_it(results, sandbox):
    test = results(sandbox, True)["test_full_disk"]
    assert (test.status, test.limits) == ("failed", [])
    assert test.usage.disk_bytes > 15 << 20


@SANDBOXES
def test_files_that_a_short_call_maps_are_not_its_memory(results, sandbox):
    """More than the memory limit, for a moment that the watch hardly ever sees."""
    test = results(sandbox, True)["test_mapped_files"]
    assert (test.status, test.limits) == ("passed", [])


@SANDBOXES
def test_memory_that_workers_share_counts_once(results, sandbox):
    test = results(sandbox, True)["test_workers"]
    assert (test.status, test.limits) == ("passed", [])


def test_without_a_sandbox_it_says_what_it_cannot_know_and_not_limit(make_problem, make_submission, evaluate):
    problem = make_problem({"test_checkpoint_1.py": "def test_work(run):\n    assert run('work').stdout == 'done'"})
    submission, environment = make_submission({"main.py": SUBMISSION}), {"limits": {"cpus": 0.1}}
    results = evaluate(problem, submission, sandbox="none", environment=environment)
    (test,) = results.tests
    assert test.usage.cpu_s >= 0.3
    unknown = ("wait_s", "memory_bytes", "processes", "written_bytes", "disk_bytes")
    assert [getattr(test.usage, name) for name in unknown] == [None] * len(unknown)
    assert results.warnings == ["limits.cpus was not enforced: only control groups limit CPU time"]


HOG = "import os; os.execv('./hog', ['hog'])"
BOTH = "def test_first(run):\n    assert run().stdout == 'done'\n\n\ndef test_second(run):\n    assert False"


@SANDBOXES
def test_a_submission_that_has_its_box_killed_gets_a_verdict(make_problem, make_submission, evaluate, sandbox):
    submission = make_submission({"main.py": HOG})
    compile_c(Path(__file__).with_name("socket_hog.c"), submission / "hog", "-static")
    problem = make_problem({"test_checkpoint_1.py": BOTH})
    limits = {"memory": "64M", "disk": "16M"}
    results = evaluate(problem, submission, sandbox=sandbox, environment={"limits": limits})
    if not results.isolation["control_groups"]:
        pytest.skip("no control groups can be made here")
    assert results.infrastructure_failure_reason is None
    assert [test.status for test in results.tests] == ["failed", "failed"]
    first = results.tests[0]
    assert "memory limit: the kernel ended the submission's box" in first.failure_message
    assert [(struck.kind, struck.limit) for struck in first.limits] == [("memory", 64 << 20)]


BURN = "import time\nwhile time.process_time() < 0.15: pass\nprint('done')"
ONE = "def test_done(run):\n    assert run().stdout == 'done\\n'"


def test_the_share_of_cpu_time_is_enforced_in_a_control_group(make_problem, make_submission, evaluate, caplog):
    caplog.set_level("INFO")
    problem, submission = make_problem({"test_checkpoint_1.py": ONE}), make_submission({"main.py": BURN})
    results = evaluate(problem, submission, sandbox="bubblewrap", environment={"limits": {"cpus": 0.1}})
    assert results.tests[0].status == "passed"
    if not can_limit_cpus():
        assert "cpus" not in results.isolation["limits"]
        assert "limits.cpus was not enforced: only control groups limit CPU time" in results.warnings
        pytest.skip("no control groups of CPU time can be made here")
    assert results.isolation["limits"]["cpus"] == results.tests[0].usage.processors == 0.1
    assert results.warnings == []
    assert "cpu.stat of the control group: nr_throttled" in caplog.text


SWAP_OUT = """
import ctypes, mmap, signal
PAGE_OUT = 21
libc, kept = ctypes.CDLL(None, use_errno=True), []
for _ in range(10):
    kept.append(mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    kept[-1].write(bytes(range(256)) * (1 << 16))
    address = ctypes.addressof(ctypes.c_char.from_buffer(kept[-1]))
    if libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(16 << 20), PAGE_OUT):
        raise OSError(ctypes.get_errno(), "madvise")
signal.pause()
"""


@pytest.fixture
def swap(tmp_path):
    """Swap space of this machine, or a file of ours for the time of a test."""
    if len(Path("/proc/swaps").read_text().splitlines()) > 1:
        yield
        return
    file = tmp_path / "swap"
    if os.geteuid() != 0:
        pytest.skip("there is no swap space")
    file.write_bytes(bytes(256 << 20))
    file.chmod(0o600)
    if subprocess.run(["mkswap", file], capture_output=True).returncode or subprocess.run(["swapon", file]).returncode:
        pytest.skip("no swap space can be made here")
    try:
        yield
    finally:
        subprocess.run(["swapoff", file], check=True)
        file.unlink()


def test_memory_that_was_swapped_out_counts(swap, make_problem, make_submission, evaluate, tmp_path, monkeypatch):
    """Where there is a control group, nothing of the submission is swapped out."""
    monkeypatch.setattr(bubblewrap_sandbox, "control_groups", partial(control_groups, root=tmp_path))
    problem, submission = make_problem({"test_checkpoint_1.py": ONE}), make_submission({"main.py": SWAP_OUT})
    (test,) = evaluate(problem, submission, environment={"limits": {"memory": "96M"}}).tests
    assert [(struck.kind, struck.limit) for struck in test.limits] == [("memory", 96 << 20)]
