"""The run lock: who holds it, and the message for everybody else."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from slop_code.runs.discover import DiscoveredRun
from slop_code.runs.folders import run_lock
from slop_code.runs.folders.run_lock import STATE_DIR, lock_runs
from slop_code.runs.jobs.plan import Shard

HOLDER = """
import sys
from pathlib import Path
from slop_code.runs.discover import DiscoveredRun
from slop_code.runs.folders.run_lock import lock_runs
from slop_code.runs.jobs.plan import Shard

shard = Shard.parse(sys.argv[2]) if sys.argv[2] else None
with lock_runs([DiscoveredRun("monday", Path(sys.argv[1]), ("a submission",))], shard) as [run]:
    print("held" if run.submissions else run.issues[0].reason, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "monday").mkdir()
    return tmp_path / "monday"


@pytest.fixture
def start(folder):
    """A process that holds the folder, or says why it does not, until it is told to end or killed."""
    started = []

    def one(shard="", *more):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, folder, shard, *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process, process.stdout.readline().strip()

    yield one
    for process in started:
        process.communicate()


def reason(folder, shard=None):
    """Why it cannot be held now; None when it can."""
    with lock_runs([DiscoveredRun("monday", folder, ("a submission",))], shard) as [run]:
        assert bool(run.submissions) == (not run.issues)
        return run.issues[0].reason if run.issues else None


@pytest.mark.e2e
def test_the_second_evaluator_is_told_who_holds_the_lock(folder, start):
    process, said = start()
    assert said == "held"
    message = reason(folder)
    assert message.startswith(f"{folder}: held by process {process.pid} of ")
    for part in (f" on {socket.gethostname()} since 20", f"(-c {folder} '')", "; wait for its end, or end it"):
        assert part in message
    assert message.count("process") == 1
    assert reason(folder, Shard(1, 2)) == message, "a shard is kept out by the whole"


@pytest.mark.e2e
def test_the_lock_is_free_when_its_holder_ends(folder, start):
    process, _ = start()
    process.communicate()
    assert reason(folder) is None
    assert [path.read_text() for path in (folder / STATE_DIR).iterdir()] == [""], "nobody is named who is gone"


@pytest.mark.e2e
def test_the_lock_is_free_when_its_holder_is_killed(folder, start):
    process, _ = start()
    process.kill()
    process.wait()
    assert "process" not in (reason(folder) or "")
    assert reason(folder, Shard(1, 2)) is None


@pytest.mark.e2e
def test_a_killed_holder_is_not_named_for_those_that_came_after(folder, start):
    dead, _ = start()
    dead.kill()
    dead.wait()
    shard, said = start("1/2")
    assert said == "held"
    message = reason(folder)
    assert f"process {shard.pid} " in message
    assert f"process {dead.pid} " not in message


@pytest.mark.e2e
def test_shards_of_one_plan_run_at_the_same_time(folder, start):
    processes = [start(f"{number}/3")[0] for number in (1, 2)]
    assert reason(folder, Shard(3, 3)) is None
    message = reason(folder)
    assert all(f"process {process.pid} of " in message for process in processes)
    assert message.count("process ") == 2
    again = reason(folder, Shard(2, 3))
    assert f"process {processes[1].pid} of " in again
    assert again.count("process ") == 1
    for process in processes:
        process.communicate()
    assert reason(folder) is None


@pytest.mark.e2e
def test_shards_of_two_plans_exclude_each_other(folder, start):
    process, _ = start("1/3")
    assert f"process {process.pid} of " in reason(folder, Shard(2, 4))
    process.communicate()
    assert reason(folder, Shard(2, 4)) is None


@pytest.mark.e2e
def test_a_holder_in_this_process_keeps_it_from_another(folder, start):
    with lock_runs([DiscoveredRun("monday", folder, ("a submission",))], None):
        _, said = start()
        assert f"process {os.getpid()} of " in said
    assert start()[1] == "held"


def problem_of(folder):
    return DiscoveredRun("monday", folder / "larder", ("a submission",), within=folder)


@pytest.mark.e2e
def test_the_run_is_looked_at_again_once_its_problem_is_locked(folder, start, monkeypatch):
    """Another evaluator locks the whole run after the first look, which found no lock there."""
    (folder / "larder").mkdir()
    lock = run_lock._lock

    def lock_later(*arguments):
        assert start()[1] == "held"
        return lock(*arguments)

    monkeypatch.setattr(run_lock, "_lock", lock_later)
    with lock_runs([problem_of(folder)], None) as [run]:
        assert not run.submissions
        assert run.issues[0].reason.startswith(f"{folder}: held by process ")


@pytest.mark.e2e
def test_a_run_is_not_held_while_one_of_its_problems_is(folder, start):
    (folder / "larder").mkdir()
    with lock_runs([problem_of(folder)], None) as [run]:
        assert run.submissions
        assert f"held by process {os.getpid()} of " in start()[1]
    assert start()[1] == "held"


@pytest.mark.e2e
def test_a_very_long_command_hides_nobody(folder, start):
    process, _ = start("", *[f"runs/run-{number}" for number in range(2000)])
    message = reason(folder)
    assert f"process {process.pid} of " in message
    assert len(message) < 1000


@pytest.mark.parametrize(
    "garbage",
    [
        b"", b"nonsense", b"\xff\xfe\x00", b"[]", b"{}", b'"text"', b"[" * 4000, b'{"pid": 1}', b"x" * 100_000,
        b'{"pid": null, "user": [], "host": {}, "since": 1, "command": "\\u001b[31m"}', b"null", b"1" * 5000,
    ],
)  # fmt: skip
def test_a_lock_with_any_content_still_locks(folder, garbage):
    """Whoever wrote there, and whatever: the lock counts."""
    (folder / STATE_DIR).mkdir()
    (folder / STATE_DIR / "lock").write_bytes(garbage)
    with lock_runs([DiscoveredRun("monday", folder, ("a submission",))], None) as [run]:
        assert run.submissions
        assert json.loads((folder / STATE_DIR / "lock").read_text())["pid"] == os.getpid()
        (folder / STATE_DIR / "lock").write_bytes(garbage)
        message = reason(folder)
        assert message.startswith(f"{folder}: held by ")
        assert len(message) < 5000


def test_a_locked_run_does_not_stop_the_others(folder, tmp_path):
    (tmp_path / "tuesday").mkdir()
    with lock_runs([DiscoveredRun("monday", folder, ("a submission",))], None):
        runs = [
            DiscoveredRun("monday", folder, ("a",)),
            DiscoveredRun("tuesday", tmp_path / "tuesday", ("b",)),
            DiscoveredRun("", None, ("c",)),
        ]
        with lock_runs(runs, None) as [monday, tuesday, loose]:
            assert (monday.submissions, len(monday.issues)) == ((), 1)
            assert (monday.issues[0].run, monday.issues[0].problem) == ("monday", None)
            assert (tuesday, loose) == (runs[1], runs[2])
            assert reason(tmp_path / "tuesday") is not None
    assert reason(folder) is None


@pytest.mark.parametrize("spoil", ["file", "loop", "lock is a folder"])
def test_a_folder_that_is_not_writable_is_an_issue(folder, spoil):
    if spoil == "file":
        (folder / STATE_DIR).write_text("")
    elif spoil == "loop":
        (folder / STATE_DIR).symlink_to(STATE_DIR)
    else:
        (folder / STATE_DIR / "lock").mkdir(parents=True)
    assert reason(folder).startswith(f"{folder}: results cannot be written there: ")


def test_a_folder_that_went_away(folder):
    folder.rmdir()
    why, step = reason(folder).split("; ")
    assert why == f"{folder}: results cannot be written there: No such file or directory"
    assert step == "make it writable, or evaluate a copy of the run"


def test_a_folder_that_takes_nothing():
    """/proc does not, be it from root."""
    assert "results cannot be written there" in reason(Path("/proc"))


@pytest.mark.e2e
@pytest.mark.parametrize("known", [True, False])
def test_a_problem_of_a_run_keeps_the_whole_out(folder, start, known):
    (folder / "words").mkdir()
    if known:
        assert reason(folder) is None
    with lock_runs([DiscoveredRun("monday", folder / "words", ("a submission",), within=folder)], None) as [run]:
        assert run.submissions
        assert start()[1] != "held"
        if known:
            assert f"process {os.getpid()} of " in reason(folder)
            assert reason(folder, Shard(1, 2)) is None, "it shares the folder as a shard does"


@pytest.mark.e2e
def test_a_problem_of_a_run_that_is_held(folder, start):
    (folder / "words").mkdir()
    process, _ = start()
    with lock_runs([DiscoveredRun("monday", folder / "words", ("a submission",), within=folder)], None) as [run]:
        assert run.submissions == ()
        assert run.issues[0].reason.startswith(f"{folder}: held by process {process.pid} of ")


@pytest.mark.parametrize("shard", [None, Shard(1, 2)], ids=["whole", "shard"])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "linked folder"])
def test_a_lock_that_is_something_else_is_not_touched(folder, tmp_path, kind, shard):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    name = "lock" if shard is None else "shard-1-of-2.lock"
    if kind == "linked folder":
        (tmp_path / "elsewhere").mkdir()
        (folder / STATE_DIR).symlink_to(tmp_path / "elsewhere")
    else:
        (folder / STATE_DIR).mkdir()
        path = folder / STATE_DIR / name
        {"link": lambda: path.symlink_to(victim), "pipe": lambda: os.mkfifo(path), "folder": path.mkdir}[kind]()
    assert reason(folder, shard).startswith(f"{folder}: results cannot be written there: ")
    assert "None" not in reason(folder, shard)
    assert victim.read_text() == "precious"
    assert list(tmp_path.glob("elsewhere/*")) == []
