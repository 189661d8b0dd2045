from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import TestCase

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution import cache as module
from slop_code.execution.cache import Cache, open_lock, remove_tree, try_lock

BUILDER = """
import os, sys
from pathlib import Path
from slop_code.execution.cache import Cache

def build(folder):
    (folder / "whole").write_text("x")
    with open(sys.argv[2], "a") as log:
        log.write("built\\n")

sys.stdin.readline()
print(Cache(Path(sys.argv[1])).load_or_build("kind", "key", build, Path))
"""
HOLDER = """
import sys
from pathlib import Path
from slop_code.execution.cache import Cache

with Cache(Path(sys.argv[1])).session_folder() as folder:
    (folder / "data").mkdir()
    print(folder, flush=True)
    sys.stdin.readline()
"""
KILLED_BUILDER = """
import os, signal, sys
from pathlib import Path
from slop_code.execution.cache import Cache

def build(folder):
    (folder / "half").write_text("x")
    os.kill(os.getpid(), signal.SIGKILL)

Cache(Path(sys.argv[1])).load_or_build("kind", "key", build, Path)
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def whole(folder: Path) -> None:
    (folder / "whole").write_text("x")


def visible(folder: Path) -> list[str]:
    """What is there besides locks."""
    return sorted(entry.name for entry in folder.iterdir() if not entry.name.endswith(".lock"))


def test_an_entry_is_built_once(tmp_path):
    calls = []
    store = Cache(tmp_path)
    first = store.load_or_build("kind", "key", lambda folder: (calls.append(folder), whole(folder)), Path)
    second = store.load_or_build("kind", "key", lambda folder: calls.append(folder), Path)
    assert first == second == tmp_path / "kind" / "key"
    assert (first / "whole").is_file()
    assert len(calls) == 1


def test_hits_and_misses_are_logged(tmp_path):
    with TestCase().assertLogs("slop_code", logging.DEBUG) as logs:
        for _ in range(2):
            Cache(tmp_path).load_or_build("kind", "key", whole, Path)
    assert [record.getMessage() for record in logs.records] == [
        "cache miss: building kind/key",
        "cache hit: kind/key",
    ]


def test_threads_with_the_same_key_wait_for_one_build(tmp_path):
    store, calls, together = Cache(tmp_path), [], threading.Barrier(8)

    def want(_: int) -> Path:
        together.wait()
        return store.load_or_build("kind", "key", lambda folder: (calls.append(folder), whole(folder)), Path)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(want, range(8))) == {tmp_path / "kind" / "key"}
    assert len(calls) == 1


def test_a_new_entry_is_loaded_under_its_lock(tmp_path):
    """Another evaluator that takes it for damaged would remove it."""

    def load(entry: Path) -> bool:
        with open_lock(entry.parent / ".key.lock") as lock:
            return try_lock(lock, fcntl.LOCK_EX)

    assert not Cache(tmp_path).load_or_build("kind", "key", whole, load)


@pytest.mark.e2e
def test_processes_with_the_same_key_wait_for_one_build(tmp_path):
    processes = [start(BUILDER, tmp_path / "cache", tmp_path / "log") for _ in range(4)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    assert {process.communicate()[0].strip() for process in processes} == {str(tmp_path / "cache/kind/key")}
    assert (tmp_path / "log").read_text() == "built\n"


@pytest.mark.parametrize("error", [InfrastructureError("no"), KeyboardInterrupt()])
def test_a_build_that_fails_leaves_nothing(tmp_path, error):
    store = Cache(tmp_path)

    def fail(folder: Path) -> None:
        (folder / "half").mkdir()
        raise error

    with pytest.raises(type(error)):
        store.load_or_build("kind", "key", fail, Path)
    assert visible(tmp_path / "kind") == []
    assert (store.load_or_build("kind", "key", whole, Path) / "whole").is_file()


@pytest.mark.e2e
def test_remains_of_a_killed_builder_are_removed_by_the_next(tmp_path):
    with start(KILLED_BUILDER, tmp_path) as process:
        process.wait()
    assert len(visible(tmp_path / "kind")) == 1
    assert visible(Cache(tmp_path).load_or_build("kind", "key", whole, Path)) == ["whole"]
    assert visible(tmp_path / "kind") == ["key"]


def test_a_session_folder_is_removed_at_its_end(tmp_path):
    store = Cache(tmp_path)
    with store.session_folder() as folder:
        (folder / "data").mkdir()
        assert folder.parent == tmp_path / "sessions"
    with pytest.raises(ValueError, match="stop"), store.session_folder():
        raise ValueError("stop")
    assert list((tmp_path / "sessions").iterdir()) == []


@pytest.mark.e2e
def test_only_sessions_of_killed_evaluators_are_removed(tmp_path):
    with start(HOLDER, tmp_path) as killed, start(HOLDER, tmp_path) as alive:
        gone, kept = (Path(process.stdout.readline().strip()) for process in (killed, alive))
        killed.kill()
        killed.wait()
        assert gone.is_dir()
        with Cache(tmp_path).session_folder() as mine:
            assert not gone.exists()
            assert (kept / "data").is_dir()
            with Cache(tmp_path).session_folder() as inner:
                assert mine.is_dir()
                assert inner != mine
        alive.communicate("end\n")
        assert not kept.exists()


@pytest.mark.parametrize("names", [[], ["new"], ["lock"], ["lock", "data"]])
def test_unfinished_sessions_of_killed_evaluators_are_removed(tmp_path, names):
    left = tmp_path / "sessions" / "sleft"
    left.mkdir(parents=True)
    for name in names:
        (left / name).touch()
    assert Cache(tmp_path).remove_abandoned_sessions() == [left]
    assert not left.exists()


@pytest.mark.parametrize("name", ["new", "lock"])
def test_a_session_with_a_held_lock_is_not_removed(tmp_path, name):
    kept = tmp_path / "sessions" / "skept"
    kept.mkdir(parents=True)
    with (kept / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert Cache(tmp_path).remove_abandoned_sessions() == []
        assert kept.is_dir()


@pytest.mark.e2e
def test_a_session_made_while_others_clean_up_is_complete(tmp_path):
    store, ended = Cache(tmp_path), threading.Event()
    (tmp_path / "sessions").mkdir()

    def clean_up():
        while not ended.is_set():
            store.remove_abandoned_sessions()

    def make(_):
        with store.session_folder() as folder:
            (folder / "data").mkdir()
            return (folder / "lock").is_file()

    with ThreadPoolExecutor(4) as pool:
        cleaners = [pool.submit(clean_up) for _ in range(2)]
        try:
            with ThreadPoolExecutor(2) as makers:
                assert all(makers.map(make, range(200)))
        finally:
            ended.set()
        for cleaner in cleaners:
            cleaner.result()
    assert list((tmp_path / "sessions").iterdir()) == []


USER = """
import sys
from pathlib import Path
from slop_code.execution.cache import Cache

with Cache(Path(sys.argv[1])).shared_lock():
    print("in use", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.e2e
def test_the_exclusive_lock_fails_while_a_shared_lock_is_held(tmp_path):
    store = Cache(tmp_path)
    with start(USER, tmp_path) as other, store.shared_lock():
        assert other.stdout.readline() == "in use\n"
        with (
            pytest.raises(InfrastructureError, match="evaluations are running with this cache"),
            store.exclusive_lock(),
        ):
            pass
        other.communicate("end\n")
    with store.exclusive_lock(), pytest.raises(InfrastructureError), store.exclusive_lock():
        pass
    with store.exclusive_lock():
        pass


def test_a_shared_lock_waits_for_the_exclusive_lock(tmp_path):
    store, begins = Cache(tmp_path), threading.Event()

    def use() -> str:
        begins.set()
        with store.shared_lock():
            return (tmp_path / "state").read_text()

    with ThreadPoolExecutor(1) as pool:
        with store.exclusive_lock():
            (tmp_path / "state").write_text("half")
            future = pool.submit(use)
            begins.wait(60)
            (tmp_path / "state").write_text("whole")
        assert future.result(60) == "whole"


@pytest.mark.e2e
def test_a_killed_process_holds_no_lock(tmp_path):
    with start(USER, tmp_path) as killed:
        killed.stdout.readline()
        killed.kill()
        killed.wait()
    with Cache(tmp_path).exclusive_lock():
        pass


def test_a_folder_that_does_not_exist_leaves_its_parent_as_it_was(tmp_path):
    tmp_path.chmod(0o755)
    remove_tree(tmp_path / "gone")
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_an_entry_that_cannot_be_read_after_it_was_built_is_an_infrastructure_failure(empty_cache):
    def load(_):
        raise ValueError("another version's")

    with pytest.raises(InfrastructureError, match="kind/key: was built and cannot be read: another version's"):
        empty_cache.load_or_build("kind", "key", lambda _: None, load)


def test_remove_tree_removes_folders_without_permissions(tmp_path):
    root = tmp_path / "root"
    for path in ("a/b/c", "a/d", "e"):
        (root / path).mkdir(parents=True)
        (root / path / "file").write_text("x")
    (tmp_path / "outside").write_text("kept")
    (root / "a/link").symlink_to(tmp_path / "outside")
    (root / "a/loop").symlink_to("loop")
    os.mkfifo(root / "e/pipe")
    for path in ("a/b/c", "a/b", "a/d", "a", "e"):
        (root / path).chmod(0)
    remove_tree(root)
    assert not root.exists()
    assert (tmp_path / "outside").read_text() == "kept"


@pytest.mark.e2e
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_remove_tree_as_an_ordinary_user():
    """Root may read everything, so the way of everybody else is walked in a process of somebody else."""
    code = """
import os, sys
from pathlib import Path
from slop_code.execution.cache import remove_tree
root = Path(sys.argv[1])
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
(root / "a/b").mkdir(parents=True)
(root / "a/b/file").write_text("x")
for path in ("a/b", "a"):
    (root / path).chmod(0)
remove_tree(root / "a")
print((root / "a").exists())
"""
    with tempfile.TemporaryDirectory() as root:
        os.chown(root, 65534, 65534)
        with start(code, root) as process:
            assert process.communicate()[0] == "False\n"


def test_the_lock_of_a_session_is_removed_last(tmp_path, monkeypatch):
    """A session that was killed meanwhile can still be recognised."""
    cache = Cache(tmp_path)
    seen = []
    remove = module.remove_tree

    def watch(folder):
        seen.append((folder.name, (folder.parent / "lock").exists() or (folder / "lock").exists()))
        remove(folder)

    with cache.session_folder() as folder:
        (folder / "reports").mkdir()
        (folder / "settings.json").write_text("{}")
        monkeypatch.setattr(module, "remove_tree", watch)
    assert seen == [("reports", True), (folder.name, True)]
    assert not folder.exists()


def test_nothing_runs_while_a_repetition_has_the_machine(empty_cache):
    with empty_cache.running_lock(), empty_cache.running_lock():
        pass
    with empty_cache.quiet_lock():
        for name in (module.QUIET_GATE, module.RUNNING):
            with module.open_lock(empty_cache.root / name) as lock:
                assert not module.try_lock(lock, fcntl.LOCK_SH), name
    with empty_cache.running_lock():
        pass


def test_who_waits_for_the_machine_is_not_overtaken(empty_cache):
    order = []

    def repeat():
        with empty_cache.quiet_lock():
            order.append("repeat")

    def run():
        with empty_cache.running_lock():
            order.append("run")

    with empty_cache.running_lock():
        repeating = threading.Thread(target=repeat)
        repeating.start()
        with module.open_lock(empty_cache.root / module.QUIET_GATE) as gate:
            while module.try_lock(gate, fcntl.LOCK_EX):
                fcntl.flock(gate, fcntl.LOCK_UN)
        running = threading.Thread(target=run)
        running.start()
        assert order == []
    repeating.join()
    running.join()
    assert order == ["repeat", "run"]
