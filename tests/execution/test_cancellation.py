"""Cancel tokens, scopes, deadlines and waits."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution import process
from slop_code.execution.cache import Cache, file_lock
from slop_code.execution.cancellation import (
    CancelToken,
    EvaluationCancelledError,
    cancel_scope,
    check_cancelled,
    deadline,
    wait_for,
)

PATIENCE_S = 20
FAMILY = """
import fcntl, os, signal, sys
signal.alarm(100)
if os.fork() == 0:
    signal.alarm(100)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    file = open(sys.argv[1], "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    open(sys.argv[2], "w").write("x")
while True:
    signal.pause()
"""


@pytest.fixture
def token():
    made = CancelToken()
    yield made
    made.close()


@pytest.fixture
def begin():
    """Run it in a thread, with this stop; its future."""
    with ThreadPoolExecutor() as pool:

        def work(token, function, *arguments, **options):
            with cancel_scope(token):
                return function(*arguments, **options)

        yield lambda *arguments, **options: pool.submit(work, *arguments, **options)


@pytest.fixture
def signs(tmp_path):
    """A pipe with a name: who opens it for reading waits until a process opens it for writing."""
    path = tmp_path / "signs"
    os.mkfifo(path)
    return path


def family(tmp_path, signs):
    return [sys.executable, "-c", FAMILY, str(tmp_path / "lock"), str(signs)]


def nobody_holds(path):
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return True


def test_a_cancelled_token_stays_cancelled(token):
    assert not token.is_cancelled()
    token.cancel()
    token.cancel()
    assert token.is_cancelled()
    token.close()
    token.close()
    token.cancel()
    assert token.is_cancelled()


def test_a_second_cancel_wakes_waiters_when_the_first_was_interrupted(token, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            token.cancel()
    token.cancel()
    assert select.select([token], [], [], 0)[0]


def test_a_closed_token_can_still_be_cancelled():
    token = CancelToken()
    token.close()
    token.cancel()
    assert token.is_cancelled()


def test_a_token_counts_only_inside_its_scope(token):
    token.cancel()
    with cancel_scope(token), pytest.raises(EvaluationCancelledError, match="stopped before its end"):
        check_cancelled()
    check_cancelled()
    assert not wait_for(None, 0)


def test_the_innermost_scope_counts(token):
    token.cancel()
    with cancel_scope(token):
        inner = CancelToken()
        with cancel_scope(inner):
            check_cancelled()
        inner.close()
        with pytest.raises(EvaluationCancelledError):
            wait_for(None, 60)


def test_waiting_for_a_descriptor_ends_with_cancellation(token):
    reader, writer = os.pipe()
    with cancel_scope(token):
        assert not wait_for(reader, 0)
        os.write(writer, b"x")
        assert wait_for(reader, 60)
        os.close(writer)
        os.read(reader, 1)
        assert wait_for(reader, 60), "an end is something to read"
        token.cancel()
        with pytest.raises(EvaluationCancelledError):
            wait_for(reader, 60)
    os.close(reader)


@pytest.mark.e2e
def test_a_signal_that_does_not_wake_the_main_thread_is_noticed():
    """Another thread takes it, as when it comes just before the main thread blocks: no call returns for it."""
    noticed, before = threading.Event(), signal.signal(signal.SIGUSR1, lambda *_: noticed.set())
    reader, writer = os.pipe()
    in_time = []

    def send():
        os.kill(os.getpid(), signal.SIGUSR1)
        in_time.append(noticed.wait(PATIENCE_S))
        os.write(writer, b"x")

    sender = threading.Timer(0.5, send)
    sender.start()  # before the mask, which a new thread inherits
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        assert wait_for(reader, float("inf"))
    finally:
        sender.join()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
        signal.signal(signal.SIGUSR1, before)
        os.close(reader)
        os.close(writer)
    assert in_time == [True]


@pytest.mark.e2e
def test_a_running_process_is_ended_with_its_whole_group(token, begin, tmp_path, signs):
    future = begin(token, process.run, family(tmp_path, signs), env={}, log=tmp_path / "log", timeout=100)
    signs.read_text()
    token.cancel()
    with pytest.raises(EvaluationCancelledError):
        future.result(60)
    assert nobody_holds(tmp_path / "lock")


@pytest.mark.e2e
def test_a_running_process_is_ended_without_pidfd_too(token, begin, tmp_path, signs, monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")
    assert process.run(["false"], env={"PATH": os.defpath}, log=tmp_path / "log", timeout=60).exit_code == 1
    assert process.run(["sleep", "60"], env={"PATH": os.defpath}, log=tmp_path / "log", timeout=0.1).exit_code is None
    future = begin(token, process.run, family(tmp_path, signs), env={}, log=tmp_path / "log", timeout=100)
    signs.read_text()
    token.cancel()
    with pytest.raises(EvaluationCancelledError):
        future.result(60)
    assert nobody_holds(tmp_path / "lock")


@pytest.mark.e2e
def test_a_piped_process_is_ended(token, begin, tmp_path, signs):
    def conversation():
        with process.open_piped(["sh", "-c", f"echo $$ > {signs}; exec cat"], tmp_path / "log") as child:
            child.read(1, time.monotonic() + 60)

    future = begin(token, conversation)
    pid = int(signs.read_text())
    token.cancel()
    with pytest.raises(EvaluationCancelledError):
        future.result(60)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_no_process_is_started_after_cancellation(token, tmp_path):
    token.cancel()
    argv = ["touch", str(tmp_path / "begun")]
    with cancel_scope(token):
        with pytest.raises(EvaluationCancelledError):
            process.run(argv, env={"PATH": os.defpath}, log=tmp_path / "log", timeout=60)
        with pytest.raises(EvaluationCancelledError), process.open_piped(argv, tmp_path / "log"):
            pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.e2e
def test_clean_up_commands_run_after_cancellation(token):
    """And in a session of its own: an interrupt on the terminal is none for it."""
    token.cancel()
    own = [sys.executable, "-c", "import os, sys; sys.exit(os.getsid(0) != os.getpid())"]
    with cancel_scope(token):
        assert process.capture(own, 60).exit_code == 0
        assert process.succeeds(own)


def test_waiting_for_a_lock_ends_with_cancellation(token, begin, tmp_path):
    waits = threading.Event()

    def want():
        waits.set()
        with file_lock(tmp_path / "lock"):
            pass

    with file_lock(tmp_path / "lock"):
        future = begin(token, want)
        waits.wait(60)
        token.cancel()
        with pytest.raises(EvaluationCancelledError):
            future.result(60)


@pytest.mark.e2e
def test_a_cancelled_build_leaves_nothing_and_the_next_build_succeeds(token, tmp_path):
    def build(folder):
        (folder / "half").touch()
        process.run(["true"], env={"PATH": os.defpath}, log=folder / "log", timeout=60)

    token.cancel()
    with cancel_scope(token), pytest.raises(EvaluationCancelledError):
        Cache(tmp_path).load_or_build("kind", "key", build, Path)
    assert [path.name for path in (tmp_path / "kind").iterdir()] == [".key.lock"]
    assert (Cache(tmp_path).load_or_build("kind", "key", build, Path) / "half").exists()


def test_a_deadline_ends_a_wait_with_its_message():
    with pytest.raises(InfrastructureError, match=r"^it took too long$"), deadline(0.01, "it took too long"):
        wait_for(None, PATIENCE_S)


@pytest.mark.parametrize("seconds", [None, PATIENCE_S])
def test_a_deadline_that_does_not_strike_changes_nothing(seconds):
    with deadline(seconds, "late"):
        assert not wait_for(None, 0.0)
    check_cancelled()


def test_cancellation_from_outside_is_no_deadline():
    with contextlib.closing(CancelToken()) as token, cancel_scope(token):
        token.cancel()
        with pytest.raises(EvaluationCancelledError), deadline(PATIENCE_S, "late"):
            wait_for(None, PATIENCE_S)
