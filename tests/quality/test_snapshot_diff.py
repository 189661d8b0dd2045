"""Changes between snapshots, also those of hostile trees."""

from __future__ import annotations

import os
import socket

import pytest

from slop_code.quality import snapshot_diff
from slop_code.quality.line_diff import StepBudget
from slop_code.quality.snapshot_diff import MAX_STEPS, compare_files, read_snapshot
from slop_code.quality.sources import NOT_WRITTEN_BY_AGENTS


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = os.path.join(os.fsencode(folder), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(content if isinstance(content, bytes) else content.encode())
    return folder


def changes_between(before, after):
    """Of two folders; None where one of them is not recorded."""
    earlier, files = {} if before is None else read_snapshot(before), read_snapshot(after)
    return None if files is None or earlier is None else compare_files(earlier, files, StepBudget(MAX_STEPS))


@pytest.fixture
def changed(tmp_path):
    def changes(before, after):
        earlier = None if before is None else write(tmp_path / "before", before)
        return changes_between(earlier, write(tmp_path / "after", after))

    return changes


def paths(changes, kind):
    return [change.path for change in changes.files if change.kind == kind]


def facts(changes):
    kinds = [paths(changes, kind) for kind in ("added", "removed", "changed")]
    return kinds, changes.lines_added, changes.lines_removed, changes.churn


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, ([[], [], []], 0, 0, None)),
        (None, {"a": "1\n2\n"}, ([["a"], [], []], 2, 0, None)),
        ({"a": "1\n2\n"}, {"a": "1\n2\n"}, ([[], [], []], 0, 0, 0.0)),
        ({"a": "1\n2\n3\n4\n"}, {"a": "1\n2\nx\n4\n5\n"}, ([[], [], ["a"]], 2, 1, 0.75)),
        ({"a": "1\n2\n"}, {"b": "1\n2\n"}, ([["b"], ["a"], []], 2, 2, 2.0)),  # a renamed file
        ({"a": "1\n2\n"}, {}, ([[], ["a"], []], 0, 2, 1.0)),
        ({"a": ""}, {"a": "", "b": ""}, ([["b"], [], []], 0, 0, None)),
        ({"a": "1"}, {"a": "1\n"}, ([[], [], ["a"]], 1, 1, 2.0)),
        ({"a": "1\n"}, {"a/b": "1\n"}, ([["a/b"], ["a"], []], 1, 1, 2.0)),
    ],
)
def test_files_and_lines_are_counted(changed, before, after, expected):
    assert facts(changed(before, after)) == expected


def test_lines_of_the_earlier_snapshot_are_counted(changed):
    changes = changed({"a": "1\n2\n", "x.py": "1", "b": "\0\n\n"}, {"a": "1\n"})
    assert (changes.lines_before, changes.unread) == (3, 0)


@pytest.mark.parametrize("name", sorted(NOT_WRITTEN_BY_AGENTS))
def test_folders_of_packages_and_tools_are_left_out_at_any_depth(changed, name):
    changes = changed({"main.py": "1\n"}, {"main.py": "1\n", f"{name}/x.py": "1\n", f"a/{name}/b/x.py": "1\n"})
    assert changes.files == ()


def test_a_file_with_the_name_of_such_a_folder_counts(changed):
    assert paths(changed({}, {"node_modules": "1\n"}), "added") == ["node_modules"]


def test_binary_files_have_no_lines(changed):
    changes = changed({"a": b"\0\n1", "b": "1\n", "c": b"\0"}, {"a": b"\0\n2", "b": b"\0\n", "c": b"\0"})
    assert [(change.path, change.is_binary) for change in changes.files] == [("a", True), ("b", True)]
    assert (changes.lines_added, changes.lines_removed, changes.unread) == (0, 1, 0)
    assert [*changes.files[0].diff()] == []
    assert [*changes.files[1].diff()] == ["@@ -1 +0,0 @@", "-1"]


@pytest.mark.parametrize("folder", ["missing", "file", "link", "loop"])
def test_a_snapshot_that_cannot_be_read_is_not_recorded(tmp_path, folder):
    real = write(tmp_path / "real", {"a": "1\n"})
    (tmp_path / "file").write_text("1")
    (tmp_path / "link").symlink_to(real)
    (tmp_path / "loop").symlink_to("loop")
    assert changes_between(real, tmp_path / folder) is None
    assert changes_between(tmp_path / folder, real) is None
    assert changes_between(real, real) is not None


def test_links_and_special_files_are_never_read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("key\n")
    tree = write(tmp_path / "tree", {"a.py": "1\n"})
    (tree / "link").symlink_to(secret)
    (tree / "up").symlink_to("..")
    (tree / "absolute").symlink_to("/")
    os.mkfifo(tree / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree / "s"))
        assert list(read_snapshot(tree)) == [b"a.py"]


def test_odd_names_are_text(changed):
    names = [b"\xff\xfe", b"<img src=x>\n\x1b[2J", b"\\xff\\xfe", b"-rf", "ä".encode()]
    changes = changed({}, dict.fromkeys(names, "1\n"))
    assert set(paths(changes, "added")) == {"\\xff\\xfe", "<img src=x>\n\x1b[2J", "-rf", "ä"}
    assert changes.lines_added == 5


def test_large_files_are_not_read(changed, monkeypatch):
    monkeypatch.setattr(snapshot_diff, "MAX_FILE_BYTES", 10)
    monkeypatch.setattr(snapshot_diff, "MAX_FILE_LINES", 3)
    changes = changed({"a": "1\n", "b": "1\n" * 4, "c": "1\n"}, {"a": "x" * 11, "b": "1\n" * 4, "c": "1\n2\n"})
    assert [(change.path, change.is_unread, change.lines_added) for change in changes.files] == [
        ("a", True, 0),
        ("c", False, 1),
    ]
    assert changes.unread == 2
    assert [*changes.files[0].diff()] == []


def test_a_large_sparse_file_is_not_read(tmp_path):
    tree = write(tmp_path / "tree", {"a": "text\n" * 2_000})
    os.truncate(tree / "a", 1 << 40)
    assert read_snapshot(tree)[b"a"].is_unread


def test_bytes_of_a_snapshot_are_bounded(changed, monkeypatch):
    monkeypatch.setattr(snapshot_diff, "MAX_SNAPSHOT_BYTES", 10)
    changes = changed({}, {"a": "123456\n", "b": "123456\n", "c": "1\n"})
    assert [change.path for change in changes.files if change.is_unread] == ["b"]
    assert (changes.lines_added, changes.unread) == (2, 1)


def test_lines_of_a_snapshot_are_bounded(changed, monkeypatch):
    monkeypatch.setattr(snapshot_diff, "MAX_SNAPSHOT_LINES", 4)
    changes = changed({}, {"a": "1\n" * 3, "b": "1\n" * 2, "c": "1\n"})
    assert [change.path for change in changes.files if change.is_unread] == ["b"]
    assert (changes.lines_added, changes.unread) == (4, 1)


def test_changes_hold_the_texts_of_the_snapshots_and_no_further_copies(tmp_path):
    before = read_snapshot(write(tmp_path / "before", {"a": "1\n" * 1000}))
    after = read_snapshot(write(tmp_path / "after", {"a": "2\n" * 1000}))
    [change] = compare_files(before, after, StepBudget(100_000)).files
    assert [version is snapshot[b"a"] for version, snapshot in zip(change.versions, (before, after), strict=True)] == [
        True,
        True,
    ]
    assert len([*change.diff()]) == 2001


def test_a_snapshot_with_too_many_files_is_not_measured(changed, monkeypatch):
    monkeypatch.setattr(snapshot_diff, "MAX_FILES", 3)
    assert len(changed({}, {"a": "", "b": "", "c": ""}).files) == 3
    assert changed({}, {"d": ""}) is None


def test_a_tree_that_is_too_deep_is_not_measured(tmp_path):
    folder = tmp_path / "tree"
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(450):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    assert changes_between(None, folder) is None


def test_a_comparison_beyond_its_steps_is_rough_and_the_next_file_is_not(tmp_path):
    before = write(tmp_path / "before", {"a": "head\n" + "x\ny\n" * 20_000 + "tail\n", "b": "1\n2\n"})
    after = write(tmp_path / "after", {"a": "head\n" + "y\nx\nx\n" * 15_000 + "tail\n", "b": "1\n"})
    changes = changes_between(before, after)
    assert [(change.path, change.is_rough) for change in changes.files] == [("a", True), ("b", False)]
    assert changes.rough == 1
    assert (changes.lines_added, changes.lines_removed) == (45_000, 40_001)


def test_many_equal_lines_are_compared_exactly(changed):
    changes = changed({"a": "same\n" * 40_000}, {"a": "same\n" * 30_000})
    assert (changes.lines_added, changes.lines_removed, changes.rough) == (0, 10_000, 0)


def test_steps_of_all_files_are_bounded_together(tmp_path):
    files = {f"{n}": "x\ny\n" * 200 for n in range(5)}
    before = read_snapshot(write(tmp_path / "before", files))
    after = read_snapshot(write(tmp_path / "after", dict.fromkeys(files, "y\nx\nx\n" * 150)))
    budget = StepBudget(100_000)
    changes = compare_files(before, after, budget)
    assert 0 < changes.rough < 5
    assert budget.left >= 0
