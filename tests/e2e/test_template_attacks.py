"""Submissions that look for the template of their judge, for other evaluations, and for ways to stay behind."""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from slop_code.evaluation import PytestRunner
from slop_code.execution.templates import TemplatePool
from tests.marks import in_long
from tests.process_checks import groups_of, sessions_held

pytestmark = pytest.mark.e2e

WORKERS = 4
TESTS = {
    "test_checkpoint_1.py": """
    import json, os, re, subprocess
    import pytest

    def shown(value):
        text = re.sub(r"/s\\w{8}\\b", "/SESSION", json.dumps(value, sort_keys=True))
        pytest.fail("STATE" + re.sub(r":\\[\\d+\\]", "", text) + "END", pytrace=False)

    def test_seen_by_the_submission(run):
        shown(json.loads(run("look").stdout or "0"))

    def test_descriptors_of_a_program_of_the_tests():
        links = "[os.readlink(f'/proc/self/fd/{n}') for n in sorted(os.listdir('/proc/self/fd'))[:-1]]"
        listing = f"import os; print({links})"
        shown(subprocess.run(["/usr/bin/env", "python3", "-c", listing], capture_output=True, text=True).stdout)

    def test_processes_of_the_judge():
        names = [name for name in os.listdir("/proc") if name.isdigit()]
        shown([len(names), os.path.exists("/box"), sorted(os.listdir("/")), sorted(os.listdir("/slop"))])

    def test_attack(run):
        assert run("attack", timeout=60).returncode is not None

    def test_answer(run):
        assert run("answer").stdout == "42\\n"
    """
}

LOOK = """
import ctypes, json, os, socket, stat, sys

def descriptors():
    found = {}
    for name in sorted(os.listdir("/proc/self/fd"), key=int):
        try:
            info = os.fstat(int(name))
            found[name] = [stat.S_IFMT(info.st_mode), os.readlink(f"/proc/self/fd/{name}").split(":")[0]]
        except OSError:
            pass
    return found

def limits():
    with open("/proc/self/limits") as file:
        return [" ".join(line.split()) for line in file if "pending" not in line and "processes" not in line]

def status():
    with open("/proc/self/status") as file:
        return [line.split() for line in file if line.startswith(("Uid", "Gid", "Groups", "Cap", "Seccomp:", "NoNew"))]

def mounts():
    with open("/proc/self/mountinfo") as file:
        return sorted(" ".join(line.split()[4:6]) for line in file)

def sockets():
    with open("/proc/net/unix") as file:
        return len([line for line in file if "@" in line])

def look():
    return {
        "descriptors": descriptors(), "limits": limits(), "status": status(), "mounts": mounts(),
        "root": sorted(os.listdir("/")), "environment": sorted(os.environ), "umask": os.umask(0o22), "nice": os.nice(0),
        "processes": len([name for name in os.listdir("/proc") if name.isdigit()]), "abstract sockets": sockets(),
        "shared memory": open("/proc/sysvipc/shm").read().splitlines()[1:], "shm files": os.listdir("/dev/shm"),
        "folders": {path: sorted(os.listdir(path)) for path in ("/tmp", "/workspace", os.environ["HOME"])},
        "session": os.getsid(0) == os.getpid(), "affinity": len(os.sched_getaffinity(0)),
        "times": [os.lstat("link").st_mtime_ns, os.lstat("main.py").st_size],
    }
"""  # fmt: skip

ATTACKS = {
    "honest": "",
    "kill everything": "import os, signal\nos.kill(-1, signal.SIGKILL)",
    "stop everything": "import os, signal\nos.fork() and os._exit(0)\nos.kill(-1, signal.SIGSTOP)",
    "daemons that wait for the next one": """
        import os, signal, socket, time
        for _ in range(20):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    for number in range(1, 31):
                        if number not in (9, 19): signal.signal(number, signal.SIG_IGN)
                    own = socket.socket(socket.AF_UNIX)
                    try: own.bind("\\0left-behind")
                    except OSError: pass
                    time.sleep(1000)
                os._exit(0)
    """,
    "fork bomb": """
        import os, time
        try:
            for _ in range(3000): os.fork()
        except OSError:
            time.sleep(5)
    """,
    "trace and read others": """
        import ctypes, os
        libc = ctypes.CDLL(None)
        for pid in [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]:
            libc.ptrace(16, pid, 0, 0)
            for name in ("mem", "environ", "maps", "root", "cwd", "ns/user"):
                try: os.open(f"/proc/{pid}/{name}", os.O_RDWR)
                except OSError: pass
    """,
    "memory and keys that stay": """
        import ctypes, os
        libc = ctypes.CDLL(None)
        shared = libc.shmget(4242, 4096, 0o1777)
        libc.semget(4242, 1, 0o1777); libc.msgget(4242, 0o1777)
        libc.syscall(248, b"user", b"left", b"behind", 6, -4)
        open("/dev/shm/left-behind", "w").write("x")
    """,
    "poisoned files": """
        import os
        for folder in (".", "/tmp", os.environ["HOME"], ".evaluation_tests", ".scbench", "/slop/judge", "/slop"):
            for name in ("conftest.py", "sitecustomize.py", "pytest.ini", "json.py", "__pycache__/json.pyc"):
                try:
                    os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                    open(os.path.join(folder, name), "w").write("raise SystemExit(0)")
                except OSError: pass
    """,
    "full disk": """
        try:
            with open("/tmp/full", "wb") as file:
                for _ in range(600): file.write(b"x" * (1 << 20))
        except OSError: pass
    """,
    "namespaces": """
        import ctypes, os
        libc = ctypes.CDLL(None)
        for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000): libc.unshare(flag)
        for name in os.listdir("/proc/self/ns"):
            for pid in (1, 2, os.getppid()):
                try: libc.setns(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), 0)
                except OSError: pass
        libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)
    """,
}
MAIN = """
import json, sys
from look import look
if sys.argv[1:] == ["look"]: print(json.dumps(look()))
elif sys.argv[1:] == ["answer"]: print(42)
else: import attack
"""


@pytest.fixture(scope="module")
def judge(cache, need_bubblewrap, environment_spec, make_problem, make_submission):
    """`judge("fork bomb", pool)`: a result."""
    need_bubblewrap()
    problem = make_problem(TESTS)
    spec = environment_spec({"limits": {"processes": 64, "disk": 64 << 20, "memory": 256 << 20}})

    def evaluate(name, pool):
        submission = make_submission({"main.py": MAIN, "look.py": LOOK, "attack.py": ATTACKS[name]})
        (submission / "link").symlink_to("main.py")
        os.utime(submission / "link", ns=(1, 1_000_000_123), follow_symlinks=False)
        checkpoint = problem.checkpoint(1)
        runner = PytestRunner(problem, checkpoint, spec, submission, cache=cache, templates=pool, repeat_starved=False)
        return runner.run()

    return evaluate


@pytest.fixture(scope="module")
def cold(judge):
    return summary(judge("honest", None))


@pytest.fixture(scope="module")
def pool(judge):
    with TemplatePool() as pool:
        for _ in range(2):
            judge("honest", pool)
        yield pool


def summary(results):
    assert results.infrastructure_failure_reason is None
    return {test.id.rpartition("::")[2]: (test.status, test.failure_message) for test in results.tests}


def seen(result):
    message = result["test_seen_by_the_submission"][1]
    return json.loads(message.split("STATE", 1)[1].rsplit("END", 1)[0])


def test_a_submission_sees_the_same_in_boxes_of_every_kind_of_judge(judge, cold, pool):
    results = judge("honest", pool)
    assert results.isolation["judge"] == "collected", results.isolation
    forked = summary(results)
    here, there = seen(cold), seen(forked)
    assert {key: (here[key], there[key]) for key in here if here[key] != there[key]} == {}
    assert forked == cold
    assert forked["test_answer"][0] == "passed"


QUICK = ["kill everything", "poisoned files", "namespaces"]


@pytest.mark.parametrize("name", [*QUICK, *in_long(*(name for name in ATTACKS if name not in ("honest", *QUICK)))])
def test_the_submission_after_an_attack_finds_what_the_first_one_found(judge, cold, pool, name):
    attacked = judge(name, pool)
    assert attacked.isolation["judge"] == "collected"
    assert attacked.infrastructure_failure_reason is None or "subject's box" in attacked.infrastructure_failure_reason
    after = judge("honest", pool)
    assert after.isolation["judge"] == "collected"
    assert summary(after) == cold


@pytest.mark.long
def test_attacks_and_honest_submissions_side_by_side_leave_each_other_alone(judge, cold, pool, cache):
    names = [name for attack in ATTACKS for name in (attack, "honest")] * 4
    before = counts(cache)
    with ThreadPoolExecutor(WORKERS) as threads:
        results = list(threads.map(lambda name: (name, judge(name, pool)), names))
    assert [summary(result) for name, result in results if name == "honest"] == [cold] * names.count("honest")
    assert counts(cache) == before


def counts(cache):
    """Descriptors, threads, sessions and control groups of this process, and mounts in its cache."""
    with open("/proc/self/mountinfo") as file:
        mounts = len([line for line in file if str(cache.root) in line])
    return [
        len(os.listdir("/proc/self/fd")), threading.active_count(), sessions_held(cache),
        groups_of(os.getpid()), mounts,
    ]  # fmt: skip


PRINTING = """
import subprocess

def test_init(entrypoint):
    print("printed by a test")
    assert subprocess.run([*entrypoint, "init"]).returncode == 0

def test_output_of_tests(entrypoint):
    seen = subprocess.run(entrypoint, capture_output=True, text=True).stdout
    assert seen == "pipe\\n"
"""
KEEPING = """
import os, sys
if sys.argv[1:]:
    with open("kind", "w") as file:
        file.write(os.readlink("/proc/self/fd/1").split(":")[0])
else:
    print(open("kind").read())
"""


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker")])
def test_a_submission_never_gets_the_file_that_keeps_the_output_of_tests(
    sandbox, make_problem, make_submission, evaluate
):
    results = evaluate(
        make_problem({"test_checkpoint_1.py": PRINTING}), make_submission({"main.py": KEEPING}), sandbox=sandbox
    )
    assert [test.failure_message for test in results.tests] == [None, None], results.infrastructure_failure_reason
