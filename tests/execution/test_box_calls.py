"""Calls across boxes: what a launcher asks for in one box, `serve` starts in the other."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import tarfile

import pytest

from slop_code.execution.archive import STATUS
from slop_code.execution.bubblewrap import bwrap_binary
from slop_code.execution.bubblewrap.system_mounts import system_arguments

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

    def words(argv, mounts):
        mounts = {"/tests": tmp_path / "tests", "/slop/call/conf": tmp_path / "conf", **mounts}
        return [
            bwrap_binary.bwrap(), "--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL", "--unshare-pid",
            "--unshare-ipc", "--as-pid-1", "--die-with-parent", *system_arguments(), "--proc", "/proc", "--dev", "/dev",
            "--dir", "/workspace", "--dir", "/slop/call/done", "--dir", "/slop/shown", "--dir", "/tmp",
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


WAITING = ["/bin/sh", "-c", "echo started; exec sleep 1000"]


@contextlib.contextmanager
def two_boxes(box, helper, judge):
    """As two containers are: `pair` in one admits `serve` of the other."""
    steps = ["--mkdir", "/given/folder", "755", "--listen", "/slop/gate/socket", "--ready", "--admit", "60"]
    argv = ["/slop/pair", "init", *steps, "--send", "given", "/given", "--judge", *judge]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(box(argv, {"/slop/pair": helper, "/slop/slop-run": helper}), **pipes) as first:
        assert first.stdout.readline() == b"ready 0 0 0\n"
        serve = ["/slop/server", "serve", "/slop/gate/socket", *GENEROUS]
        with subprocess.Popen(box(serve, {"/slop/server": helper})) as second:
            try:
                yield first, second
            finally:
                first.kill()
                second.kill()


def test_one_box_admits_the_other(helper, box):
    judge = ["/slop/slop-run", "sh", "-c", "echo for the log; exit 3"]
    with two_boxes(box, helper, judge) as (first, second):
        packed, log = first.stdout.read(), first.stderr.read()
        assert (first.wait(60), second.wait(60), log) == (3, 0, b"for the log\n")
    assert contents(packed) == (["given/folder"], 3 << 8)


def test_the_end_of_the_other_box_is_noticed(helper, box):
    with two_boxes(box, helper, WAITING) as (first, second):
        assert first.stderr.readline() == b"started\n"
        second.kill()
        packed, log = first.stdout.read(), first.stderr.read()
        assert (first.wait(60), log) == (124, b"slop-code: the subject's box ended before the tests\n")
    assert contents(packed) == (["given/folder"], 124 << 8)


def test_it_stops_when_nobody_waits_any_more(helper, box):
    with two_boxes(box, helper, WAITING) as (first, second):
        assert first.stderr.readline() == b"started\n"
        first.stdin.close()
        packed = first.stdout.read()
        assert (first.wait(60), second.wait(60)) == (128 + signal.SIGKILL, 0)
    assert contents(packed) == (["given/folder"], signal.SIGKILL)
