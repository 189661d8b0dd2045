from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from slop_code.errors import InfrastructureError, SubmissionError
from slop_code.execution import submission as module
from slop_code.execution.cache import remove_tree
from slop_code.execution.submission import open_submission, read_tree, tree_digest, walk_tree


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    (folder / "sub").mkdir(parents=True)
    (folder / "main.py").write_text("print()")
    (folder / "sub" / "data").write_text("data")
    (folder / "link").symlink_to("sub/data")
    return folder


def set_times(tree: Path) -> None:
    for path in [tree, *tree.rglob("*")]:
        os.utime(path, (1, 1), follow_symlinks=False)


def retarget(tree: Path) -> None:
    (tree / "link").unlink()
    (tree / "link").symlink_to("main.py")


def link_to_file(tree: Path) -> None:
    (tree / "link").unlink()
    (tree / "link").write_text("sub/data")


def reserved(tree: Path) -> None:
    for name in (".evaluation_tests", ".scbench"):
        (tree / name).mkdir()
        (tree / name / "planted").write_text("x")


CHANGES = [
    ("content", lambda tree: (tree / "main.py").write_text("print(1)"), True),
    ("content below", lambda tree: (tree / "sub/data").write_text("date"), True),
    ("name", lambda tree: (tree / "main.py").rename(tree / "more.py"), True),
    ("name of a folder", lambda tree: (tree / "sub").rename(tree / "other"), True),
    ("executable", lambda tree: (tree / "main.py").chmod(0o755), True),
    ("no longer readable", lambda tree: (tree / "main.py").chmod(0o244), True),
    ("no longer writable", lambda tree: (tree / "main.py").chmod(0o444), True),
    ("a folder that may not be written to", lambda tree: (tree / "sub").chmod(0o555), True),
    ("link target", retarget, True),
    ("link to file", link_to_file, True),
    ("new file", lambda tree: (tree / "sub/new").touch(), True),
    ("new empty folder", lambda tree: (tree / "empty").mkdir(), True),
    ("removed", lambda tree: (tree / "sub/data").unlink(), True),
    ("moved up", lambda tree: (tree / "sub/data").rename(tree / "data"), True),
    ("pipe", lambda tree: os.mkfifo(tree / "pipe"), True),
    ("reserved names below", lambda tree: (tree / "sub/.scbench").mkdir(), True),
    ("times", set_times, False),
    ("group may write", lambda tree: (tree / "main.py").chmod(0o664), False),
    ("reserved names", reserved, False),
]


@pytest.mark.parametrize(("change", "differs"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_the_digest_depends_on_names_kinds_modes_and_contents(tree, change, differs):
    before = tree_digest(tree)
    change(tree)
    assert (tree_digest(tree) != before) is differs


def test_the_digest_does_not_depend_on_the_path(tree, tmp_path):
    before = tree_digest(tree)
    tree.rename(tmp_path / "elsewhere")
    assert tree_digest(tmp_path / "elsewhere") == before


def test_names_and_contents_cannot_be_confused(make_submission):
    digests = {
        tree_digest(make_submission(files)) for files in ({"ab": "c"}, {"a": "bc"}, {"a/b": "c"}, {"a": "b", "c": ""})
    }
    assert len(digests) == 4


def test_odd_entries_have_a_digest_too(tree):
    (tree / "loop").symlink_to("loop")
    (tree / "up").symlink_to("..")
    (tree / "nowhere").symlink_to("/no/such/place")
    os.mkfifo(tree / "pipe")
    Path(os.fsdecode(os.fsencode(tree) + b"/\xff\xfe")).write_text("x")
    with socket.socket(socket.AF_UNIX) as listener, pytest.MonkeyPatch.context() as patch:
        patch.chdir(tree)
        listener.bind("socket")
        assert tree_digest(tree) == tree_digest(tree)


READ_AS_ORDINARY_USER = """
import os
from pathlib import Path
from slop_code.execution.submission import read_tree
if os.geteuid() == 0:
    os.seteuid(65534)
tree = read_tree(Path("."))
print(tree.digest, tree.unreadable, tree.first_unreadable)
"""
READ_WITH_FEW_DESCRIPTORS = """
import resource
from pathlib import Path
from slop_code.execution.submission import read_tree
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
print(read_tree(Path(".")).over_limit)
"""


def read_in_process(tree: Path, program: str) -> list[str]:
    argv = [sys.executable, "-c", program]
    return subprocess.run(argv, cwd=tree, stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def read_as_ordinary_user(tree: Path) -> list[str]:
    """Root may read everything."""
    return read_in_process(tree, READ_AS_ORDINARY_USER)


@pytest.mark.e2e
def test_unreadable_files_are_counted(tree):
    digest, *found = read_as_ordinary_user(tree)
    assert (digest, found) == (tree_digest(tree), ["0"])
    (tree / "a").mkdir()
    for name in ("a/one", "a/two"):
        (tree / name).write_text("x")
        (tree / name).chmod(0)
    (tree / "sub").chmod(0)
    try:
        first, second = read_as_ordinary_user(tree), read_as_ordinary_user(tree)
        assert first == second
        assert first[0] != digest
        assert first[1:] == ["3", "a/one"]
        (tree / "sub").chmod(0o644)  # whose names can be read, and nothing else of it
        assert read_as_ordinary_user(tree)[1:] == ["3", "a/one"]
    finally:
        (tree / "sub").chmod(0o700)


@pytest.mark.parametrize(
    ("modes", "refused"),
    [
        ({"main.py": 0o600, "notes": 0o600}, True),
        ({"main.py": 0o600, "notes": 0o644}, False),
        ({"main.py": 0o600, "notes": 0o000}, False),
        ({}, False),
    ],
)
def test_a_snapshot_of_which_this_user_can_read_no_file_is_refused(tmp_path, monkeypatch, modes, refused):
    """Not for one file, with which a submission could cancel a bad score. The system would let root read them all."""
    for name, mode in modes.items():
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(mode)
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr(os, "access", lambda path, *_, **__: os.stat(path).st_mode & 0o004 != 0)
    with pytest.raises(SubmissionError, match="can read none of its files") if refused else nullcontext():
        open_submission(tmp_path)


def make_deep(folder: Path, depth: int, name: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=descriptor)
        inner = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("depth", "name", "refused"),
    [
        (400, "n" * 60, None),
        (401, "d", "the tree has folders nested more than 400 deep"),
        (1500, "d", "the tree has folders nested more than 400 deep"),
    ],
)
def test_the_depth_of_folders_is_limited(tmp_path, depth, name, refused):
    root = tmp_path / "deep"
    root.mkdir()
    make_deep(root, depth, name)
    try:
        tree = read_tree(root)
        assert (tree.over_limit, len(tree.digest)) == (refused, 64)
        assert read_tree(root) == tree
    finally:
        remove_tree(root)
    assert not root.exists()


@pytest.mark.e2e
def test_a_deep_tree_needs_few_descriptors(tree):
    make_deep(tree, 400, "d")
    try:
        assert read_in_process(tree, READ_WITH_FEW_DESCRIPTORS) == ["None"]
    finally:
        remove_tree(tree)


def test_a_folder_that_moves_while_it_is_read_is_an_infrastructure_failure(tree, tmp_path):
    entries = walk_tree(tree)
    while next(entries).path != b"sub/data":
        pass
    (tree / "sub").rename(tmp_path / "moved")
    with pytest.raises(InfrastructureError, match="moved while it was read"):
        list(entries)


def test_open_submission_makes_the_path_absolute(tree, monkeypatch):
    monkeypatch.chdir(tree.parent)
    (tree.parent / "alias").symlink_to(tree)
    assert open_submission(Path("tree")) == tree.resolve()
    assert open_submission(Path("alias")) == tree.resolve()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "missing: there is no such folder; give the folder"),
        ("tree/main.py", "not a folder; give the folder"),
        ("tree/main.py/x", "not a folder; give the folder"),
        ("loop", "loop: cannot be read"),
        ("n" * 300, "cannot be read: File name too long"),
    ],
)
def test_open_submission_refuses_what_is_no_folder(tree, name, message):
    (tree.parent / "loop").symlink_to("loop")
    with pytest.raises(SubmissionError, match=message):
        open_submission(tree.parent / name)


@pytest.mark.parametrize(
    ("code", "kind"),
    [(errno.EIO, InfrastructureError), (errno.EMFILE, InfrastructureError), (errno.EACCES, SubmissionError)],
    ids=errno.errorcode.get,
)
def test_only_what_its_author_can_cause_is_the_fault_of_a_submission(tree, monkeypatch, code, kind):
    def fails(_path):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("slop_code.execution.submission.os.scandir", fails)
    with pytest.raises(kind, match="cannot be read"):
        open_submission(tree)


@pytest.mark.parametrize(
    ("limit", "most", "message"), [("MAX_BYTES", 1199, "including holes"), ("MAX_ENTRIES", 1, "files and folders")]
)
def test_the_limits_hold_for_all_files_together(tmp_path, monkeypatch, limit, most, message):
    for name in ("one", "other"):
        (tmp_path / name).touch()
        os.truncate(tmp_path / name, 600)
    assert read_tree(tmp_path).over_limit is None
    monkeypatch.setattr(module, limit, most)
    refused = read_tree(tmp_path)
    assert message in refused.over_limit
    (tmp_path / "one").write_bytes(bytes(599) + b"1")
    assert read_tree(tmp_path).digest != refused.digest


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.ENOENT])
def test_an_error_of_the_machine_is_an_infrastructure_failure(tmp_path, monkeypatch, number):
    def fail(*_arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "listdir", fail)
    with pytest.raises(InfrastructureError, match=os.strerror(number)):
        tree_digest(tmp_path)
