"""The result cache: entries, claims, limits, and many processes at a time."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from slop_code._io import digest_of
from slop_code.errors import UsageError
from slop_code.execution.cache import Cache
from slop_code.runs import result_cache as module
from slop_code.runs.result_cache import DEFAULT_LIMIT, ResultCache, ResultCacheInfo

KEY, OTHER = digest_of("a"), digest_of("b")
HOLDER = """
import sys
from pathlib import Path
from slop_code.execution.cache import Cache
from slop_code.runs.result_cache import ResultCache

claim = ResultCache(Cache(Path(sys.argv[1]))).claim(sys.argv[2])
print("none" if claim is None else "held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def store(tmp_path):
    return ResultCache(Cache(tmp_path))


def files(store):
    return sorted(path.relative_to(store.root).as_posix() for path in store.root.rglob("*") if path.is_file())


def fill(store, number, size=1000):
    """Entries in the order of their use, an hour apart from each other."""
    keys = [digest_of(index) for index in range(number)]
    for age, key in enumerate(reversed(keys), start=1):
        store.put(key, b"x" * size)
        os.utime(store.root / key[:2] / key, (time.time() - 3600 * age,) * 2)
    return keys


def test_get_returns_what_was_put(store):
    assert store.get(KEY) is None
    assert not store.has(KEY)
    store.put(KEY, b"archive")
    store.put(OTHER, b"")
    assert (store.get(KEY), store.get(OTHER)) == (b"archive", b"")
    assert store.has(KEY)
    store.put(KEY, b"another")
    assert store.get(KEY) == b"another"
    assert files(store) == sorted(f"{key[:2]}/{key}" for key in (KEY, OTHER))


@pytest.mark.parametrize("key", ["", "abc", "../" + KEY, KEY + "/x", "g" * 64, KEY.upper()])
def test_a_key_is_a_digest(store, key):
    for use in (store.get, store.claim, store.has, lambda key: store.put(key, b"")):
        with pytest.raises(ValueError, match="not a key"):
            use(key)


def test_a_damaged_entry_is_removed(store):
    store.put(KEY, b"archive of some length")
    path = store.root / KEY[:2] / KEY
    whole = path.read_bytes()
    for damaged in [*(whole[:end] for end in range(len(whole))), whole + b"x", b"foreign" * 20, whole[:-1] + b"x"]:
        path.write_bytes(damaged)
        assert store.get(KEY) is None
        assert not path.exists()


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_a_folder_or_link_in_place_of_an_entry_is_removed(store, tmp_path, kind):
    path = store.root / KEY[:2] / KEY
    path.parent.mkdir(parents=True)
    if kind == "link":
        store.put(OTHER, b"x")
        path.symlink_to(store.root / OTHER[:2] / OTHER)
    elif kind == "folder":
        (path / "inner").mkdir(parents=True)
    else:
        os.mkfifo(path)
    assert store.get(KEY) is None
    assert not os.path.lexists(path)
    store.put(KEY, b"archive")
    assert store.get(KEY) == b"archive"


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.EACCES, errno.EIO, errno.ENOMEM])
def test_an_entry_that_cannot_be_read_now_stays(store, monkeypatch, code):
    store.put(KEY, b"archive")

    def refuse(*_arguments, **_options):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "open", refuse)
    assert store.get(KEY) is None
    monkeypatch.undo()
    assert store.get(KEY) == b"archive"


def test_a_full_disk_costs_the_entry_and_nothing_else(store, monkeypatch):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    store.put(KEY, b"archive")
    assert (store.get(KEY), files(store)) == (None, [])
    store.save_duration("name", 1.0)
    assert store.expected_duration("name") is None


def test_a_cache_folder_that_cannot_be_made_is_no_error(tmp_path):
    (tmp_path / "results").write_text("a file")
    store = ResultCache(Cache(tmp_path))
    store.put(KEY, b"x")
    assert store.get(KEY) is None
    claim = store.claim(KEY)
    assert claim is not None, "no locks here: the work is done without"
    claim.release()
    assert store.trim() == (0, 0)


def test_a_claim_is_held_by_one_thread(store):
    claim = store.claim(KEY)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(store.claim, KEY).result() is None
        other = pool.submit(store.claim, OTHER).result()
    assert other is not None
    other.release()
    claim.release()
    claim.release()
    assert files(store) == []
    again = store.claim(KEY)
    assert again is not None
    again.release()


@pytest.mark.e2e
def test_a_claim_is_held_by_one_process_and_ends_with_it(store, tmp_path):
    argv = [sys.executable, "-c", HOLDER, str(tmp_path), KEY]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(argv, **pipes) as holder:
        assert holder.stdout.readline() == "held\n"
        assert store.claim(KEY) is None
        holder.kill()
        holder.wait()
    mine = store.claim(KEY)
    assert mine is not None
    with subprocess.Popen(argv, **pipes) as other:
        assert other.communicate("\n")[0] == "none\n"
    mine.release()


def test_a_lock_that_was_removed_between_opening_and_locking_is_not_held(store, monkeypatch):
    """Else a second one could hold the same key by a new file."""
    first, real = store.claim(KEY), module.try_lock

    def slow(lock, kind):
        if not first.lock.closed:
            first.release()
        return real(lock, kind)

    monkeypatch.setattr(module, "try_lock", slow)
    second = store.claim(KEY)
    assert store.claim(KEY) is None
    second.release()


@pytest.mark.e2e
def test_many_threads_never_hold_the_same_claim(store):
    together, inside, most = threading.Barrier(4), [], []

    def work(_):
        together.wait(60)
        got = 0
        for _ in range(200):
            if claim := store.claim(KEY):
                inside.append(1)
                most.append(len(inside))
                inside.pop()
                claim.release()
                got += 1
        return got

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(work, range(4))) > 0
    assert set(most) == {1}
    assert files(store) == []


@pytest.mark.parametrize("seconds", [0.0, 0.0123456, 12.5, 86400.0])
def test_saved_durations_are_read_back(store, seconds):
    assert store.expected_duration("problem/checkpoint_1") is None
    store.save_duration("problem/checkpoint_1", seconds)
    store.save_duration("../../odd\n", 3)
    assert store.expected_duration("problem/checkpoint_1") == pytest.approx(seconds, rel=1e-5)
    assert store.expected_duration("../../odd\n") == 3
    assert store.info().entries == 0


@pytest.mark.parametrize("text", ["", "soon", "nan", "inf", "-1", "1" * 100])
def test_a_malformed_duration_is_ignored(store, text):
    store.save_duration("name", 1)
    (path,) = (store.root / "durations").iterdir()
    path.write_text(text)
    assert store.expected_duration("name") is None


def test_info_counts_entries_and_bytes(store):
    assert store.info() == ResultCacheInfo(0, 0, None, None)
    keys = fill(store, 3)
    held = store.claim(keys[0])
    info = store.info()
    assert (info.entries, info.bytes) == (3, sum((store.root / key[:2] / key).stat().st_size for key in keys))
    assert info.newest_use - info.oldest_use == pytest.approx(7200, abs=60)
    held.release()


@pytest.mark.parametrize(("kept", "left"), [(5, 5), (4, 4), (2.5, 2), (0.5, 0), (0, 0)])
def test_the_least_recently_used_entries_are_pruned_first(store, kept, left):
    keys = fill(store, 5)
    size = store.info().bytes // 5
    store.limit = int(kept * size)
    assert store.trim() == (5 - left, (5 - left) * size)
    assert [key for key in keys if store.has(key)] == keys[5 - left :]


def test_get_marks_an_entry_as_used(store):
    keys = fill(store, 3)
    store.get(keys[0])
    store.limit = store.info().bytes - 1
    store.trim()
    assert [store.has(key) for key in keys] == [True, False, True]


def test_trimming_keeps_to_the_limit(tmp_path):
    store = ResultCache(Cache(tmp_path), 2500)
    fill(store, 4)
    assert store.trim()[0] == 2
    assert store.trim() == (0, 0)


def test_pruning_removes_files_of_killed_processes_only(store):
    fill(store, 1)
    held = store.claim(KEY)
    folder = store.root / OTHER[:2]
    folder.mkdir(exist_ok=True)
    for name in (f".{OTHER}.lock", f".{OTHER}.0123456789abcdef", ".odd.lock"):
        (folder / name).touch()
        os.utime(folder / name, (0, 0))
    os.utime(held.path, (0, 0))
    (folder / f".{OTHER}.fedcba").touch()
    store.trim()
    assert store.claim(KEY) is None
    assert [path.name for path in folder.iterdir()] == [f".{OTHER}.fedcba"]
    assert store.info().entries == 1
    held.release()


@pytest.mark.e2e
def test_readers_writers_and_pruners_at_once(store):
    keys, together = [digest_of(index) for index in range(20)], threading.Barrier(6)

    def write(_):
        together.wait(60)
        for key in keys * 3:
            store.put(key, key.encode() * 20)
        return True

    def read(_):
        together.wait(60)
        return all(store.get(key) in (None, key.encode() * 20) for key in keys * 10)

    def prune(limit):
        together.wait(60)
        pruner = ResultCache(Cache(store.root.parent), limit)
        return all(pruner.trim()[0] >= 0 for _ in range(20))

    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(work, number) for work in (write, read, prune) for number in range(2)]
        assert all(future.result(60) for future in futures)
    assert not [name for name in files(store) if "/." in name]


@pytest.mark.parametrize(
    ("value", "limit"),
    [(None, DEFAULT_LIMIT), ("", DEFAULT_LIMIT), ("0", 0), ("500M", 500 << 20), ("1.5 GiB", 3 << 29)],
)
def test_the_limit_is_read_from_the_environment(tmp_path, monkeypatch, value, limit):
    monkeypatch.delenv("SCBENCH_RESULTS_LIMIT", raising=False)
    if value is not None:
        monkeypatch.setenv("SCBENCH_RESULTS_LIMIT", value)
    assert ResultCache(Cache(tmp_path)).limit == limit
    assert ResultCache(Cache(tmp_path), 7).limit == 7


@pytest.mark.parametrize("value", ["much", "-1", "1X"])
def test_a_malformed_limit_is_rejected(tmp_path, monkeypatch, value):
    monkeypatch.setenv("SCBENCH_RESULTS_LIMIT", value)
    with pytest.raises(UsageError, match=f"SCBENCH_RESULTS_LIMIT={value}: expected a size such as 512M"):
        ResultCache(Cache(tmp_path))
