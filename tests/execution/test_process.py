from __future__ import annotations

import fcntl
import gc
import logging
import os
import signal
import sys
import time

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution import process
from slop_code.execution.process import MAX_TAIL, capture, open_piped, run

pytestmark = pytest.mark.e2e
STRIKING = (1, 4, 16, 64)
GRANDCHILD = """
{before}
exec 9> "$1"
flock 9
sleep 200 &
exec 9>&-
echo started
{after}
"""


@pytest.fixture
def short_grace(monkeypatch):
    """For processes that ignore SIGTERM: how long they are given shows nothing."""
    monkeypatch.setattr(process, "GRACE_S", 0.2)


def shell(folder, script, *arguments, timeouts, text):
    """The result under the first of the timeouts that is long enough to print the text, however busy the machine is."""
    argv = ["/bin/sh", "-c", script, "sh", *map(str, arguments)]
    for timeout in timeouts:
        done = run(argv, env={}, log=folder / "log", timeout=timeout)
        if text in done.output:
            break
    return done


def python(folder, code, *arguments, timeout=50.0, **options):
    options = {"env": {}, "log": folder / "log", **options}
    return run([sys.executable, "-c", code, *map(str, arguments)], timeout=timeout, **options)


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("", 0),
        ("raise SystemExit(7)", 7),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import os; os.kill(os.getpid(), 15)", -15),
    ],
)
def test_exit_codes_are_returned(tmp_path, code, exit_code):
    assert python(tmp_path, code).exit_code == exit_code


def test_output_goes_to_the_log_and_its_end_comes_back(tmp_path):
    done = python(tmp_path, f"import sys; print('x' * {2 * MAX_TAIL}, flush=True); print('last', file=sys.stderr)")
    assert len(done.output) == MAX_TAIL
    assert done.output.endswith("x\nlast\n")
    assert (tmp_path / "log").stat().st_size == 2 * MAX_TAIL + 6


def test_the_call_decides_on_environment_folder_and_input(tmp_path, monkeypatch):
    monkeypatch.setenv("OF_THE_HOST", "x")
    (tmp_path / "here").mkdir()
    code = (
        "import os, sys; print(os.getcwd(), os.environ.get('OF_THE_HOST'), os.environ['GIVEN'], repr(sys.stdin.read()))"
    )
    done = python(tmp_path, code, cwd=tmp_path / "here", env={"GIVEN": "yes"})
    assert done.output == f"{(tmp_path / 'here').resolve()} None yes ''\n"


@pytest.mark.parametrize(
    ("before", "after", "timeouts", "exit_code"),
    [
        ("", "", [60], 0),
        ("", "exit 4", [60], 4),
        ("", "sleep 200", STRIKING, None),
        ("trap '' TERM", "sleep 200", STRIKING, None),
    ],
    ids=["ends", "fails", "hangs", "hangs and ignores"],
)
def test_nothing_of_the_group_is_left(short_grace, tmp_path, before, after, timeouts, exit_code):
    lock = tmp_path / "lock"
    done = shell(tmp_path, GRANDCHILD.format(before=before, after=after), lock, timeouts=timeouts, text="started")
    assert (done.exit_code, done.output) == (exit_code, "started\n")
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def test_output_after_sigterm_is_kept(tmp_path):
    script = """trap 'printf bye; exit 0' TERM; printf 'hello '; while :; do sleep 100 & wait; done"""
    done = shell(tmp_path, script, timeouts=STRIKING, text="hello")
    assert (done.exit_code, done.output) == (None, "hello bye")


@pytest.mark.parametrize("kind", ["missing", "not executable", "folder"])
def test_a_program_that_cannot_start_is_an_infrastructure_failure(tmp_path, kind):
    program = tmp_path / "program"
    if kind == "not executable":
        program.write_text("text")
    elif kind == "folder":
        program.mkdir()
    with pytest.raises(InfrastructureError, match=f"cannot start {program}: "):
        run([str(program)], env={}, log=tmp_path / "log", timeout=5)


def test_a_program_that_ignores_ends_of_processes_is_told_what_to_do(tmp_path):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(InfrastructureError, match=r"ignores SIGCHLD, .* call signal.signal"):
            python(tmp_path, "raise SystemExit(7)")
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_missing_working_directory_is_an_infrastructure_failure(tmp_path):
    with pytest.raises(InfrastructureError):
        python(tmp_path, "", cwd=tmp_path / "nowhere")


def test_no_descriptor_leaks(tmp_path):
    gc.collect()  # what earlier tests left would free descriptors meanwhile
    before = os.listdir("/proc/self/fd")
    for _ in range(5):
        python(tmp_path, "")
    assert os.listdir("/proc/self/fd") == before


def test_capture_returns_exit_code_stdout_and_stderr():
    answer = capture([sys.executable, "-c", "import sys; print('yes'); print('but', file=sys.stderr); sys.exit(3)"], 30)
    assert (answer.exit_code, answer.output, answer.errors) == (3, "yes\n", "but\n")


@pytest.mark.parametrize(
    ("argv", "reason"),
    [(["no-such-program"], "cannot start no-such-program"), (["sleep", "60"], "gave no answer within 0.1 s")],
)
def test_capture_has_a_timeout(argv, reason):
    with pytest.raises(InfrastructureError, match=reason):
        capture(argv, 0.1)


def test_a_piped_process_reads_and_writes(tmp_path):
    with open_piped(["sh", "-c", "echo hello >&2; exec cat"], tmp_path / "log") as child:
        child.send([b"one\n", b"two\n"])
        assert child.read(8, time.monotonic() + 30) == b"one\ntwo\n"
        assert not child.answers(time.monotonic())
        with pytest.raises(TimeoutError):
            child.read(1, time.monotonic() + 0.01)
        child.hang_up()
        assert child.read(1, time.monotonic() + 30) == b""
    assert (tmp_path / "log").read_text() == "hello\n"


def test_sending_to_a_process_that_has_ended_does_not_fail(tmp_path):
    with open_piped(["true"], tmp_path / "log") as child:
        assert child.read(1, time.monotonic() + 30) == b""
        child.send([b"x" * 100_000] * 100)


def test_stdin_is_closed_when_the_parts_break_off(tmp_path):
    def parts():
        yield b"half"
        raise OSError("gone")

    with open_piped(["cat"], tmp_path / "log") as child:
        with pytest.raises(OSError, match="gone"):
            child.send(parts())
        assert child.read(10, time.monotonic() + 30) == b"half"


def test_a_piped_process_ends_with_the_block(short_grace, tmp_path):
    with open_piped(["sh", "-c", "echo $$; trap '' TERM; exec sleep 600"], tmp_path / "log") as child:
        pid = int(read_line(child))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def read_line(child):
    line = b""
    while not line.endswith(b"\n"):
        line += child.read(1, time.monotonic() + 30)
    return line


def test_processes_are_logged_with_their_exit_code_and_without_values_of_variables(tmp_path, caplog):
    with caplog.at_level(logging.DEBUG, "slop_code"):
        run(["sh", "-c", "exit 3", "--setenv", "HTTP_PROXY", "secret", "x"], env={}, log=tmp_path / "log", timeout=60)
    assert [record.getMessage() for record in caplog.records] == [
        "run: sh -c 'exit 3' --setenv HTTP_PROXY '***' x",
        "exit code 3: sh",
    ]


def test_a_timeout_is_logged(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "slop_code"):
        run(["sleep", "60"], env={}, log=tmp_path / "log", timeout=0.1)
    assert [record.getMessage() for record in caplog.records] == ["timeout of 0.1 s struck: sleep"]
