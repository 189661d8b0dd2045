"""Calls across boxes: what a launcher asks for in one box, `serve` starts in the other.

`relay`: as if the boxes had two kernels, no descriptor goes from one to the other.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile

import pytest

from slop_code.execution.bubblewrap import bwrap_binary
from slop_code.execution.bubblewrap.cgroups import control_groups
from slop_code.execution.bubblewrap.system_mounts import system_arguments
from slop_code.execution.sandbox import SUBJECT_BOX_ENDED
from slop_code.execution.trees.archive import STATUS
from tests.ports import free_port

pytestmark = pytest.mark.e2e

INTERPRETER = os.path.realpath(sys.executable)
GENEROUS = [str(1 << 32), "500", str(1 << 30), "0"]


def call(*argv, **options):
    return subprocess.run(list(map(str, argv)), capture_output=True, timeout=600, **options)


def contents(packed):
    """Names of an archive's members, and the judge's wait status, which comes last."""
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        *names, last = tar.getnames()
        assert last == STATUS
        return names, int(tar.extractfile(last).read())


@pytest.fixture
def box(need_bubblewrap, tmp_path):
    """`box(argv, {"/inside": path})`: bwrap's words for a box with processes of its own and the helpers' folders."""
    need_bubblewrap()
    (tmp_path / "tests").mkdir()
    (tmp_path / "gate").mkdir()
    (tmp_path / "conf").write_text("tests=/tests\0workspace=/workspace\0output=1000000\0")

    def words(argv, mounts, *, is_root=False):
        mounts = {"/tests": tmp_path / "tests", "/slop/call/conf": tmp_path / "conf", **mounts}
        user = [] if is_root else ["--unshare-user", "--uid", "0", "--gid", "0"]
        return [
            bwrap_binary.bwrap(), *user, "--cap-add", "ALL", "--unshare-pid",
            "--unshare-ipc", "--as-pid-1", "--die-with-parent", *system_arguments(), "--proc", "/proc", "--dev", "/dev",
            "--dir", "/workspace", "--dir", "/slop/call/done", "--dir", "/slop/shown", "--dir", "/tmp",
            "--dir", "/box/root",
            "--bind", str(tmp_path / "gate"), "/slop/gate",
            *[word for inside, path in mounts.items() for word in ("--ro-bind", str(path), inside)],
            "--chdir", "/workspace", "--", *argv,
        ]  # fmt: skip

    return words


JUDGE = """
import subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
print(done.returncode, done.stderr, done.stdout, sep="|", end="")
"""
SUBJECT = r"""
/usr/bin/env; pwd; cat "$1" /slop/shown/handed.txt; ls /proc/self/fd | wc -w
grep -E '^(SigBlk|NoNewPrivs|Seccomp):' /proc/self/status; cat /proc/self/oom_score_adj
grep '^SigIgn:' /proc/self/status | sed 's/0000000180000000\|0000000080000000/0000000000000000/'
echo aside >&2; kill -USR1 $$
"""
SEEN = sorted(
    [
        *["ONLY=this", "EMPTY=", "PATH=/usr/bin:/bin", "PWD=/workspace", "/workspace"],  # PWD is the shell's
        *["handed over", "handed over", "4"],
        *[f"SigBlk:\t{0:016x}", f"SigIgn:\t{0:016x}", "NoNewPrivs:\t1", "Seccomp:\t2", "1000"],
    ]
)


def test_a_call_in_the_other_box_looks_like_a_process_of_this_one(helper, box, tmp_path):
    (tmp_path / "tests/handed.txt").write_text("handed over\n")
    environment = ["env", "-i", "ONLY=this", "EMPTY=", "PATH=/usr/bin:/bin", "PYTEST_CURRENT_TEST=private"]
    judge = [INTERPRETER, "-c", JUDGE, *environment, "/slop/slop-run", "sh", "-c", SUBJECT, "sh", "/tests/handed.txt"]
    subject = ["/slop/server", "serve", "3", *GENEROUS]
    argv = ["/slop/server", "init", "--listen", "/slop/gate/socket", "--subject", str(len(subject)), *subject]
    mounts = {"/slop/server": helper, "/slop/slop-run": helper}
    done = call(*box([*argv, "--judge", *judge], mounts))
    assert (done.returncode, done.stderr) == (0, b"")
    status, err, out = done.stdout.decode().split("|")
    assert (int(status), err, sorted(out.splitlines())) == (-signal.SIGUSR1, "aside\n", SEEN)


FILL_AND_CALL = """
import os, signal, subprocess, sys
launcher, before = sys.argv[1:]
subprocess.run([launcher, "sh", "-c", before], check=True)
filling = []
try:
    while True:
        filling.append(os.fork())
        if filling[-1] == 0:
            signal.pause()
except BlockingIOError:
    os.kill(filling[0], signal.SIGKILL)
    os.waitpid(filling[0], 0)
done = subprocess.run([launcher, "true"], stderr=subprocess.PIPE)
os.write(2, done.stderr)
sys.exit(done.returncode)
"""


@pytest.fixture
def call_in_full_group(helper, box):
    """A call of the submission where the group around both boxes is full. `before` is what an earlier call runs."""

    def run(before):
        judge = [INTERPRETER, "-c", FILL_AND_CALL, "/slop/slop-run", before]
        mounted = ("/usr", "/bin", "/lib", "/lib64", "/proc", "/slop/server")
        subject = [
            "box", "--unshare-user", "--uid", "0", "--gid", "0", "--unshare-pid", "--as-pid-1",
            *[word for path in mounted for word in ("--ro-bind-try", path, path)], "--dev", "/dev",
            "--dir", "/workspace", "--", "/slop/server", "serve", "3", *GENEROUS,
        ]  # fmt: skip
        argv = ["/slop/server", "init", "--listen", "/slop/gate/socket", "--subject", str(len(subject)), *subject]
        words = box([*argv, "--judge", *judge], {"/slop/server": helper, "/slop/slop-run": helper})
        with control_groups(1 << 30, 30) as groups:
            if not groups:
                pytest.skip("no control groups can be made here")
            return call(helper, "join-cgroups", *(group / "cgroup.procs" for group in groups), "--", *words)

    return run


def test_a_machine_without_room_for_a_call_ends_the_box_and_blames_no_submission(call_in_full_group):
    done = call_in_full_group("true")
    assert done.returncode == SUBJECT_BOX_ENDED
    assert b"slop-code: no room for a call on this machine" in done.stderr
    assert b"gave up" not in done.stderr


def test_a_submission_that_may_have_filled_the_group_is_blamed(call_in_full_group):
    done = call_in_full_group("sleep 1000 < /dev/null > /dev/null 2>&1 &")
    assert done.returncode not in (0, SUBJECT_BOX_ENDED)
    assert b"no room for a call" not in done.stderr


WAITING = ["/bin/sh", "-c", "echo started; exec sleep 1000"]


@pytest.fixture(params=["descriptors", "relay"])
def relay(request):
    if request.param == "relay" and os.geteuid():
        pytest.skip("only root has several users for the relay, the spawner and calls")
    return request.param == "relay"


@contextlib.contextmanager
def two_boxes(box, helper, judge, *, relay=False):
    """As two containers are: `init` in one box admits `serve` of the other."""
    port = free_port()
    steps = ["--mkdir", "/given/folder", "755", "--listen", "/slop/gate/socket", "--ready"]
    steps += [*(["--relay", port] if relay else []), "--admit", "60"]
    argv = ["/slop/init", "init", *steps, "--send", "given", "/given", "--judge", *judge]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    mounts = {"/slop/init": helper, "/slop/slop-run": helper}
    with subprocess.Popen(box(argv, mounts, is_root=relay), **pipes) as first:
        assert first.stdout.readline() == b"ready 0 0 0\n"
        way = ["--relay", port, "1000", "1000"] if relay else ["/slop/gate/socket"]
        serve = ["/slop/server", "serve", *way, *GENEROUS]
        with subprocess.Popen(box(serve, {"/slop/server": helper}, is_root=relay)) as second:
            try:
                yield first, second
            finally:
                first.kill()
                second.kill()


def test_one_box_admits_the_other(helper, box, relay):
    judge = ["/slop/slop-run", "sh", "-c", "echo for the log; exit 3"]
    with two_boxes(box, helper, judge, relay=relay) as (first, second):
        packed, log = first.stdout.read(), first.stderr.read()
        assert (first.wait(60), second.wait(60), log) == (3, 0, b"for the log\n")
    assert contents(packed) == (["given/folder"], 3 << 8)


def test_the_end_of_the_other_box_is_noticed(helper, box, relay):
    with two_boxes(box, helper, WAITING, relay=relay) as (first, second):
        assert first.stderr.readline() == b"started\n"
        second.kill()
        packed, log = first.stdout.read(), first.stderr.read()
        assert first.wait(60) == 124
        assert log.startswith(b"slop-code: the subject's box ended before the tests")
    assert contents(packed) == (["given/folder"], 124 << 8)


def test_it_stops_when_nobody_waits_any_more(helper, box, relay):
    with two_boxes(box, helper, WAITING, relay=relay) as (first, second):
        assert first.stderr.readline() == b"started\n"
        first.stdin.close()
        packed = first.stdout.read()
        assert (first.wait(60), second.wait(60)) == (128 + signal.SIGKILL, 0)
    assert contents(packed) == (["given/folder"], signal.SIGKILL)


CALLS = r"""
import json, os, pty, signal, subprocess, time

RUN = ["/slop/slop-run", "sh", "-c"]
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
answers = {}

def answer(name, value):
    answers[name] = value

def done(script, **options):
    return subprocess.run([*RUN, script], capture_output=True, **options)

many = os.urandom(900_000)
answer("much of it", done("cat; exit 7", input=many).stdout == many)
answer("status", done("exit 7").returncode)
answer("signal", done("kill -TERM $$").returncode)
answer("both streams", [done("echo out; echo err >&2").stdout.decode(), done("echo err >&2").stderr.decode()])
both = "for i in 1 2 3; do echo o$i; echo e$i >&2; done"
together = subprocess.run([*RUN, both], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
answer("in their order", together.stdout.decode().split())
answer("end of input", done("cat; echo ended", stdin=subprocess.DEVNULL).stdout.decode())
answer("user", done("id -u").stdout.decode().strip())

stuck = subprocess.Popen([*RUN, "yes"], **PIPES)  # nobody reads
answer("beside a full one", done("echo free").stdout.decode())
stuck.kill()
stuck.communicate()

waiting = subprocess.Popen([*RUN, "trap 'echo caught; exit 5' TERM; echo ready; while :; do read line; done"], **PIPES)
answer("ready", waiting.stdout.readline().decode())
waiting.terminate()
waiting.stdin.close()
answer("caught", [waiting.stdout.read().decode(), waiting.wait()])

answer("left", done("(sleep 1000 &) ; echo gone").stdout.decode())

with open("/tmp/out", "wb+") as file:
    subprocess.run([*RUN, "echo to a file"], stdout=file)
    file.seek(0)
    answer("file", file.read().decode())

outer, inner = pty.openpty()
dialogue = "test -t 0 && test -t 1 && test -t 2 && printf ? && read line && echo got $line"
typed = subprocess.Popen([*RUN, dialogue], stdin=inner, stdout=inner, stderr=inner)
os.close(inner)
seen = os.read(outer, 1)
os.write(outer, b"typed\n")
try:
    while chunk := os.read(outer, 4096):
        seen += chunk
except OSError:
    pass
answer("terminal", [seen.decode(), typed.wait()])
print(json.dumps(answers))
"""
ANSWERS = {
    "much of it": True,
    "status": 7,
    "signal": -signal.SIGTERM,
    "both streams": ["out\n", "err\n"],
    "in their order": ["o1", "e1", "o2", "e2", "o3", "e3"],
    "end of input": "ended\n",
    "beside a full one": "free\n",
    "ready": "ready\n",
    "caught": ["caught\n", 5],
    "left": "gone\n",
    "file": "to a file\n",
    "terminal": ["?typed\r\ngot typed\r\n", 0],
}


def test_calls_are_the_same_with_descriptors_and_through_the_relay(helper, box, relay):
    with two_boxes(box, helper, [INTERPRETER, "-c", CALLS], relay=relay) as (first, _):
        first.stdout.read()
        answers = json.loads(first.stderr.read())
    assert answers == {**ANSWERS, "user": "1000" if relay else "0"}
