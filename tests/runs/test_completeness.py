"""Completeness of snapshots: done files, and stamps that stay the same for the settle time."""

from __future__ import annotations

import os

import pytest

from slop_code.runs.follow.completeness import (
    CHANGING,
    NO_DONE_FILE,
    NOT_SETTLED,
    Stamps,
    WatchedSnapshot,
    has_run_ended,
    tree_stamp,
)


@pytest.mark.parametrize(
    ("tree", "done_files", "age", "reason"),
    [
        ("a", "m", 2.0, None),
        ("a", "m", 100.0, None),
        ("a", "m", 1.9, NOT_SETTLED),
        ("a", "m", 0.0, NOT_SETTLED),
        (None, "m", 100.0, CHANGING),
        ("a", None, 100.0, NO_DONE_FILE),
        ("a", None, 0.0, NO_DONE_FILE),
        (None, None, 100.0, NO_DONE_FILE),
    ],
)
def test_a_snapshot_is_complete_with_a_done_file_and_after_the_settle_time(tree, done_files, age, reason):
    watched = WatchedSnapshot(Stamps(tree, done_files), since=50.0)
    assert watched.incomplete_reason(50.0 + age, settle_s=2.0) == reason


@pytest.mark.parametrize(
    ("before", "now", "since"),
    [
        (None, Stamps("a", "m"), 9.0),
        (Stamps("a", "m"), Stamps("a", "m"), 5.0),
        (Stamps("a", "m"), Stamps("b", "m"), 9.0),
        (Stamps("a", None), Stamps("a", "m"), 9.0),
        (Stamps("a", "m"), Stamps("a", "n"), 9.0),
        (Stamps("a", "m"), Stamps(None, "m"), 9.0),
    ],
)
def test_the_settle_time_begins_again_with_every_change(before, now, since):
    watched = None if before is None else WatchedSnapshot(before, 5.0)
    assert WatchedSnapshot.next(watched, now, 9.0) == WatchedSnapshot(now, since)


@pytest.fixture
def snapshot(tmp_path):
    folder = tmp_path / "checkpoint_1/snapshot"
    (folder / "package").mkdir(parents=True)
    (folder / "main.py").write_text("one")
    (folder / "package/module.py").write_text("two")
    return folder


def replace_file(folder):
    (folder / "new").write_text("one")
    os.replace(folder / "new", folder / "main.py")


def replace_folder(folder):
    folder.rename(folder.with_name("old"))
    folder.mkdir()


def rewrite_with_the_same_times(folder):
    """As a program would that hides its change: the inode's change time cannot be set."""
    info = (folder / "main.py").stat()
    (folder / "main.py").write_text("eno")
    os.utime(folder / "main.py", ns=(info.st_atime_ns, info.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "main.py").write_text("more"),
        lambda folder: (folder / "package/module.py").chmod(0o700),
        lambda folder: (folder / "package/empty.py").touch(),
        lambda folder: (folder / "main.py").rename(folder / "other.py"),
        lambda folder: (folder / "link").symlink_to("main.py"),
        replace_file,
        replace_folder,
        rewrite_with_the_same_times,
    ],
)
def test_every_change_of_a_snapshot_changes_its_stamp(snapshot, change):
    for path in (snapshot, *snapshot.rglob("*")):
        os.utime(path, (1, 1))  # the stamps of files that were just made differ from those of a change
    before = tree_stamp(snapshot)
    assert before is not None
    assert tree_stamp(snapshot) == before
    change(snapshot)
    assert tree_stamp(snapshot) != before


def test_a_snapshot_that_cannot_be_read_has_no_stamp(snapshot, tmp_path):
    (tmp_path / "file").touch()
    assert tree_stamp(tmp_path / "nothing") is None
    assert tree_stamp(tmp_path / "file") is None


def test_a_snapshot_beyond_the_limits_is_complete_all_the_same(tmp_path):
    """Its verdict names the limit."""
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    folder = os.open(snapshot, os.O_RDONLY)
    for _ in range(410):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    assert tree_stamp(snapshot) == tree_stamp(snapshot) is not None


@pytest.mark.parametrize(
    ("name", "kind", "done"),
    [
        ("inference_result.json", "file", True),
        ("snapshot.done", "file", True),
        ("snapshot.done", "folder", False),
        ("snapshot.done", "link", False),
        ("evaluation.json", "file", False),
        ("snapshot/snapshot.done", "file", False),
    ],
)
def test_done_files_are_regular_files_beside_the_snapshot(snapshot, name, kind, done):
    path = snapshot.parent / name
    {"file": path.touch, "folder": path.mkdir, "link": lambda: path.symlink_to("snapshot/main.py")}[kind]()
    assert (Stamps.of(snapshot).done_files is not None) == done


@pytest.mark.parametrize(
    ("names", "ended"),
    [([], False), (["result.json"], True), (["run.done"], True), (["summary.json", "words"], False)],
)
def test_a_run_ends_with_its_result_or_a_done_file(tmp_path, names, ended):
    for name in names:
        (tmp_path / name).touch()
    assert has_run_ended(tmp_path) == ended


def test_a_run_that_has_not_started_has_not_ended(tmp_path):
    assert not has_run_ended(tmp_path / "nothing")
