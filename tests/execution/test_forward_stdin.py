"""`slopbox init --forward-stdin`: input is passed to the judge, with its end."""

from __future__ import annotations

import os
import subprocess

import pytest

pytestmark = pytest.mark.e2e
TIMEOUT_S = 60
LARGE = b"words and more words\n" * 30_000


@pytest.fixture
def init(helper, tmp_path):
    """`init` with a line for the shell as its judge."""
    started = []

    def start(line):
        argv = [helper, "init", "--ready", "--forward-stdin", "--judge", "/bin/sh", "-c", line]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, cwd=tmp_path))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_the_judge_reads_all_of_it_and_its_end(init, tmp_path):
    process = init("read first; echo $first >&2; cat > rest; exit 7")
    process.stdin.write(b"hello\n")
    process.stdin.flush()
    assert process.stderr.readline() == b"hello\n"
    process.stdin.write(LARGE + b"\4" + b"too late")
    process.stdin.flush()
    assert process.stdout.read().startswith(b"ready 0 0 0\n")
    assert process.wait(TIMEOUT_S) == 7
    assert (tmp_path / "rest").read_bytes() == LARGE


def test_the_end_of_stdin_ends_the_judge(init):
    """As without --forward-stdin: nobody is left who waits for the judge."""
    process = init("echo here >&2; while :; do read line; done")
    assert process.stderr.readline() == b"here\n"
    process.stdin.close()
    process.stdin = None
    assert process.wait(TIMEOUT_S) == 128 + 9


def test_a_judge_that_reads_nothing_holds_nobody_up(init, tmp_path):
    os.mkfifo(tmp_path / "gate")
    process = init("read word < gate; exit 3")
    os.set_blocking(process.stdin.fileno(), False)
    assert os.write(process.stdin.fileno(), LARGE) < len(LARGE)
    (tmp_path / "gate").write_text("go\n")
    process.stdout.read()
    assert process.wait(TIMEOUT_S) == 3
