"""Hangs and kills: the evaluation ends, names the reason, and leaves no process alive."""

import contextlib
import os
import re
import select
import signal
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from tests.command import SLOP_CODE
from tests.marks import in_long

pytestmark = pytest.mark.e2e

PATIENCE_S = 600

STUBBORN = """
    import os
    import signal
    import sys
    import time

    def stay(seconds=600):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.2)

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ready", flush=True)
    if sys.argv[1] == "stay":
        stay()
    elif sys.argv[1] == "daemon":
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                stay()
            os._exit(0)
        os.wait()
"""


def processes(token):
    """The ids of all processes with this word among their arguments."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if token.encode() in entry.read_bytes() and int(entry.parent.name) != os.getpid():
                found.append(int(entry.parent.name))
    return found


def left_alive(token):
    """Those of them that do not end by themselves at once: a kill takes a moment."""
    left = []
    for process in processes(token):
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(process)
            try:
                if not select.select([descriptor], [], [], 60)[0]:
                    left.append(process)
            finally:
                os.close(descriptor)
    return left


@pytest.fixture
def token():
    """A word that only the processes of this test carry; what is left of them does not outlive it."""
    word = f"token-{uuid.uuid4().hex}"
    yield word
    for process in processes(word):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def with_token(text, token):
    return {"test_checkpoint_1.py": f"TOKEN = {token!r}\n" + text}


CASES = {
    # name: (tests, config, statuses, what the hanging test is told, the reason)
    "a test that loops": (
        "def test_one(): pass\ndef test_hangs():\n    while True: pass\ndef test_last(): pass\n",
        {"timeout": 3},
        {"test_one": "passed", "test_hangs": "failed", "test_last": "passed"},
        "Timeout",
        None,
    ),
    "a fixture that waits": (
        "import pytest, threading\n"
        "@pytest.fixture\ndef never(): threading.Event().wait()\n"
        "def test_hangs(never): pass\ndef test_last(): pass\n",
        {"timeout": 3},
        {"test_hangs": "error", "test_last": "passed"},
        "Timeout",
        None,
    ),
    "a subject that stays": (
        "def test_hangs(run): run('stay', TOKEN, timeout=1)\n"
        "def test_last(run): assert run('x').stdout == 'ready\\n'\n",
        {},
        {"test_hangs": "failed", "test_last": "passed"},
        "timed out after 1 seconds",
        None,
    ),
    "a subject that stays beyond the test's time": (
        "def test_hangs(run): run('stay', TOKEN)\ndef test_last(): pass\n",
        {"timeout": 3},
        {"test_hangs": "failed", "test_last": "passed"},
        "Timeout",
        None,
    ),
    "a subject that ignores to be terminated": (
        "import subprocess\n"
        "def test_hangs(entrypoint):\n"
        "    with subprocess.Popen([*entrypoint, 'stay', TOKEN], stdout=subprocess.PIPE) as process:\n"
        "        try:\n"
        "            assert process.stdout.readline() == b'ready\\n'\n"
        "            process.terminate()\n            process.wait(1)\n"
        "        finally:\n            process.kill()\n"
        "def test_last(): pass\n",
        {},
        {"test_hangs": "failed", "test_last": "passed"},
        "timed out after 1 seconds",
        None,
    ),
    "a daemon": (
        "def test_leaves(run): assert run('daemon', TOKEN).stdout == 'ready\\n'\n",
        {},
        {"test_leaves": "passed"},
        None,
        None,
    ),
    "a test that no alarm wakes": (
        "import signal, threading\n"
        "def test_one(): pass\n"
        "def test_hangs(run):\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
        "    run('stay', TOKEN, timeout=None)\n"
        "def test_last(): pass\n",
        {"timeout": 3, "session_timeout": 20},
        {"test_one": "passed", "test_hangs": "error", "test_last": "error"},
        "this test was running",
        "session timeout of 20 s while running test_checkpoint_1.py::test_hangs",
    ),
    "a thread that keeps pytest from its end": (
        "import threading\ndef test_one(): threading.Thread(target=threading.Event().wait).start()\n",
        {"session_timeout": 20},
        {"test_one": "passed"},
        None,
        "session timeout of 20 s with no test running",
    ),
    "a judge that is killed": (
        "import os\ndef test_one(): pass\ndef test_hangs(): os.kill(os.getpid(), 9)\ndef test_last(): pass\n",
        {},
        {"test_one": "passed", "test_hangs": "error", "test_last": "error"},
        "this test was running",
        "test_checkpoint_1.py::test_hangs",
    ),
}


SHORT = ["a test that loops", "a daemon", "a judge that is killed"]


@pytest.mark.parametrize("name", [*SHORT, *in_long(*(name for name in CASES if name not in SHORT))])
def test_a_hanging_test_is_named_and_its_processes_are_gone(make_problem, make_submission, evaluate, token, name):
    tests, config, statuses, message, reason = CASES[name]
    problem = make_problem(with_token(tests, token), config=config)
    results = evaluate(problem, make_submission({"main.py": STUBBORN}))
    assert left_alive(token) == []
    assert {test.id: test.status for test in results.tests} == statuses
    messages = {test.id: test.failure_message for test in results.tests}
    assert message is None or message in messages["test_hangs"]
    assert re.search(reason or "^$", results.infrastructure_failure_reason or "")
    assert not (reason and any(results.passed.values()))


def test_a_daemon_ends_without_boxes_too(make_problem, make_submission, evaluate, token):
    problem = make_problem(with_token("def test_leaves(run): run('daemon', TOKEN, capture_output=False)\n", token))
    results = evaluate(problem, make_submission({"main.py": STUBBORN}), sandbox="none")
    assert results.passed["all-cases"]
    assert left_alive(token) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_evaluator_leaves_no_processes(
    make_problem, make_submission, cache, need_bubblewrap, tmp_path, token, number
):
    """A kill cannot be told; whatever ends the evaluator ends the boxes."""
    need_bubblewrap()
    problem = make_problem(with_token("def test_long(run): run('stay', TOKEN, timeout=60)\n", token))
    submission = make_submission({"main.py": STUBBORN})
    argv = [SLOP_CODE, "eval-snapshot", submission, "-p", problem.path, "-c", "1", "-o", tmp_path / "out"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as evaluator:
        descriptor = os.pidfd_open(evaluator.pid)
        try:
            until = time.monotonic() + PATIENCE_S
            while not processes(token) and time.monotonic() < until:
                assert not select.select([descriptor], [], [], 0.05)[0], evaluator.communicate()
        finally:
            os.close(descriptor)
            os.killpg(evaluator.pid, number)
        _, printed = evaluator.communicate(timeout=PATIENCE_S)
    assert left_alive(token) == []
    assert evaluator.returncode == (-number if number == signal.SIGKILL else 130)
    assert b"Traceback" not in printed
    assert not (tmp_path / "out" / "evaluation.json").exists()
