"""Trees on a stream: what Python packs the helper unpacks and the other way round, and what no tree is refused."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import stat
import subprocess

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution import archive
from slop_code.execution.archive import FILE, FOLDER, HEADER, LINK, PIPE, SOCKET, TREE, UP

PATIENCE_S = 30
PLACE = "/judge/reports"
END = archive.pack_end()
ODD_NAMES = [b"caf\xe9", b"\xff\xfe", b"new\nline", b"-rf", b" ", b"\x1b[2J", b"a" * 255, "ü".encode(), b"...", b"~"]


def record(kind, name=b"", *, mode=0, size=0, mtime=0, content=b""):
    return HEADER.pack(kind, 0, 0, mode, len(name), 0, size or len(content), mtime) + name + content


def reader(data):
    left = [data]

    def read(size):
        part, left[0] = left[0][:size], left[0][size:]
        return part

    return read


def tree(root, *, times=True):
    """Every path below a folder with its kind, mode, content or target, and a file's time; by descriptors."""
    found = {}
    for path, folders, files, folder in os.fwalk(os.fsencode(root)):
        for name in [*folders, *files]:
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            kind, what = stat.S_IFMT(info.st_mode), b""
            if kind == stat.S_IFLNK:
                what = os.readlink(name, dir_fd=folder)
            elif kind == stat.S_IFREG:
                with open(os.open(name, os.O_RDONLY, dir_fd=folder), "rb") as file:
                    what = file.read()
            relative = os.path.relpath(os.path.join(path, name), os.fsencode(root))
            changed = info.st_mtime_ns if kind == stat.S_IFREG and times else 0
            found[relative] = (kind, 0 if kind == stat.S_IFLNK else stat.S_IMODE(info.st_mode), what, changed)
    return found


def deep(folder, depth, name=b"d" * 60):
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    with open(os.open("bottom", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=here), "wb") as file:
        file.write(b"reached")
    os.close(here)


@pytest.fixture
def given(tmp_path):
    folder = tmp_path / "given"
    folder.mkdir()
    return folder


@pytest.fixture
def pair(helper):
    """Let `slopbox pair` unpack parts with steps behind that; what it prints after `ready`, and its exit status."""

    def run(parts, *steps):
        user = [str(os.getuid()), str(os.getgid())]
        argv = [helper, "pair", "--unpack", *user, *steps, "--judge", "/bin/true"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            with contextlib.suppress(BrokenPipeError):
                for part in parts:
                    process.stdin.write(part)
                process.stdin.flush()
            # the end of its input would tell it to stop
            descriptor = os.pidfd_open(process.pid)
            try:
                printed = b""
                while part := os.read(process.stdout.fileno(), 1 << 16):
                    printed += part
                assert select.select([descriptor], [], [], PATIENCE_S)[0]
            finally:
                os.close(descriptor)
            errors = process.stderr.read()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        return process.returncode, printed, errors

    return run


@pytest.fixture
def sent(pair, given, tmp_path):
    """The same tree as the helper unpacked it."""

    def send(*, users=True):
        target = tmp_path / "target"
        parts = [*archive.pack_tree(given, str(target), users=users), END]
        status, printed, errors = pair(parts, "--ready")
        assert (status, errors) == (0, b"")
        return target, printed

    return send


def fill(folder):
    for name in ODD_NAMES:
        (folder / os.fsdecode(name)).write_bytes(name)
        os.utime(folder / os.fsdecode(name), ns=(0, 1_234_567_890_123_456_789))
    (folder / "before-1970").touch()
    os.utime(folder / "before-1970", ns=(0, -1_500_000_000))
    for mode in (0o755, 0o600, 0o444, 0o1777):
        (folder / f"{mode:o}").touch()
        (folder / f"{mode:o}").chmod(mode)
    (folder / "empty").mkdir()
    (folder / "inner").mkdir()
    (folder / "inner" / "large").write_bytes(os.urandom(3 * archive.CHUNK + 17))
    for name, target in [("loop", "loop"), ("out", "/etc/passwd"), ("odd", os.fsdecode(b"\xff")), ("long", "x" * 4000)]:
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe")
    here = os.open(folder, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{here}/socket")
    os.close(here)


@pytest.mark.e2e
def test_the_helper_unpacks_what_python_packs(given, sent):
    fill(given)
    target, printed = sent()
    assert tree(target) == tree(given)
    measured = archive.measure(given, 1 << 30)
    assert printed.split()[0] == b"ready"
    assert measured.entries == len(tree(given))
    assert measured.size == sum(len(what) for kind, _, what, _ in tree(given).values() if kind == stat.S_IFREG)
    assert measured.space >= measured.size


@pytest.mark.e2e
def test_the_helper_measures_a_copy_as_python_does(helper, given, tmp_path):
    """So that a folder of the same name on another machine is not taken for the submission."""
    fill(given)
    for name in (".scbench", ".evaluation_tests"):
        (given / name).mkdir()
    user = [str(os.getuid()), str(os.getgid())]
    argv = [helper, "pair", "--copy", given, tmp_path / "copy", *user, "--ready", "--judge", "/bin/true"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        ready = process.stdout.readline()
        process.stdout.read()
    measured = archive.measure(given, 1 << 30)
    assert ready.decode() == f"ready {measured.entries} {measured.size} {measured.sum}\n"


def same_size(folder):
    (folder / "inner" / "a").write_text("other")


def other_name(folder):
    (folder / "inner" / "a").rename(folder / "inner" / "c")


def other_folder(folder):
    (folder / "inner" / "a").rename(folder / "a")


def other_kind(folder):
    (folder / "b").unlink()
    (folder / "b").symlink_to("x")


def other_target(folder):
    (folder / "link").unlink()
    (folder / "link").symlink_to("y")


@pytest.mark.parametrize("change", [same_size, other_name, other_folder, other_kind, other_target])
def test_a_tree_that_differs_measures_differently(given, change):
    (given / "inner").mkdir()
    (given / "inner" / "a").write_text("first")
    (given / "b").touch()
    (given / "link").symlink_to("x")
    before = archive.measure(given, 1 << 30)
    change(given)
    assert archive.measure(given, 1 << 30) != before


@pytest.mark.e2e
def test_set_user_id_is_not_carried_over(given, sent):
    (given / "program").touch()
    (given / "program").chmod(0o6755)
    target, _ = sent()
    assert stat.S_IMODE((target / "program").stat().st_mode) == 0o755


@pytest.mark.e2e
def test_what_is_ours_can_be_read_by_all_and_written_by_none(given, pair, tmp_path):
    (given / "folder").mkdir(mode=0o700)
    (given / "folder" / "file").touch(mode=0o600)
    (given / "program").touch()
    (given / "program").chmod(0o777)
    status, _, errors = pair([*archive.pack_tree(given, str(tmp_path / "target")), END])
    assert (status, errors) == (0, b"")
    modes = {os.fsdecode(name): mode for name, (_, mode, _, _) in tree(tmp_path / "target").items()}
    assert modes == {"folder": 0o755, "folder/file": 0o644, "program": 0o755}


@pytest.mark.e2e
@pytest.mark.parametrize("users", [True, False])
def test_reserved_names_of_a_submission_stay_out(given, pair, tmp_path, users):
    for name in (".scbench", ".evaluation_tests", "inner/.scbench"):
        (given / name).mkdir(parents=True)
        (given / name / "planted").touch()
    status, _, _ = pair([*archive.pack_tree(given, str(tmp_path / "target"), users=users), END])
    assert status == 0
    there = {os.fsdecode(name) for name in tree(tmp_path / "target")}
    assert "inner/.scbench/planted" in there
    assert (".scbench" in there, ".evaluation_tests/planted" in there) == (not users, not users)


@pytest.mark.e2e
def test_a_tree_deeper_than_a_path_may_be_long(given, sent):
    deep(given, 400)
    target, _ = sent()
    assert tree(target) == tree(given)
    assert any(len(name) > 20_000 for name in tree(target))
    subprocess.run(["rm", "-rf", given, target], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_what_may_not_be_read_is_there_and_empty(given, sent):
    (given / "file").write_text("secret")
    (given / "file").chmod(0)
    (given / "folder").mkdir()
    (given / "folder" / "inner").touch()
    (given / "folder").chmod(0)
    target, _ = sent()
    assert (target / "file").stat().st_size == 0
    (given / "folder").chmod(0o700)


@pytest.mark.e2e
def test_a_file_that_shrinks_or_grows_while_it_is_sent(given, pair, tmp_path):
    """As many bytes as were announced: what comes behind it stays where it belongs."""
    size = 3 * archive.CHUNK
    for name in ("1-shrinks", "2-grows"):
        (given / name).write_bytes(b"x" * size)
    (given / "3-last").write_text("whole")

    def parts():
        for part in archive.pack_tree(given, str(tmp_path / "target")):
            if b"1-shrinks" in part:
                os.truncate(given / "1-shrinks", 10)
            if b"2-grows" in part:
                with (given / "2-grows").open("ab") as file:
                    file.write(b"y" * 1000)
            yield part
        yield END

    status, _, errors = pair(parts())
    assert (status, errors) == (0, b"")
    found = {path.name: path.read_bytes() for path in (tmp_path / "target").iterdir()}
    assert found == {"1-shrinks": b"x" * 10 + bytes(size - 10), "2-grows": b"x" * size, "3-last": b"whole"}


@pytest.mark.e2e
def test_texts_and_single_files(given, pair, tmp_path):
    (given / "file").write_text("content")
    target = tmp_path / "target"
    parts = [
        *archive.pack_text("ü\n", f"{target}/a/text"),
        *archive.pack_tree(given / "file", f"{target}/b/renamed"),
        END,
    ]
    assert pair(parts)[0] == 0
    assert (target / "a/text").read_text() == "ü\n"
    assert (target / "b/renamed").read_text() == "content"


@pytest.mark.e2e
def test_python_unpacks_what_the_helper_packs(given, pair, tmp_path):
    """Of files and folders; links, pipes and sockets are nothing of ours and are left out."""
    fill(given)
    status, printed, errors = pair([END], "--ready", "--give", str(given))
    assert (status, errors) == (0, b"")
    ready, _, answer = printed.partition(b"\n")
    assert ready.startswith(b"ready ")
    back = tmp_path / "back"
    back.mkdir()
    assert archive.unpack(reader(answer), {str(given): back}) == 0
    wanted = {
        name: (kind, what, changed)
        for name, (kind, _, what, changed) in tree(given).items()
        if kind in (stat.S_IFREG, stat.S_IFDIR)
    }
    assert {name: (kind, what, time) for name, (kind, _, what, time) in tree(back).items()} == wanted


@pytest.mark.e2e
def test_the_status_of_the_judge_comes_last(helper, given):
    argv = [helper, "pair", "--ready", "--give", given, "--judge", "/bin/sh", "-c", "exit 5"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        ready, _, answer = process.stdout.read().partition(b"\n")
    assert ready.startswith(b"ready ")
    assert os.WEXITSTATUS(archive.unpack(reader(answer), {str(given): given})) == 5


HOSTILE = {
    "nothing": b"",
    "half a header": END[:-1],
    "a name that breaks off": record(TREE, PLACE.encode())[:-1],
    "a file that breaks off": record(TREE, PLACE.encode()) + record(FILE, b"a", size=100) + b"x" * 99,
    "no end": record(TREE, PLACE.encode()),
    "another place": record(TREE, b"/etc") + END,
    "a place above": record(TREE, f"{PLACE}/..".encode()) + END,
    "no place": record(FILE, b"a") + END,
    "above the place": record(TREE, PLACE.encode()) + record(UP) + record(FILE, b"a") + END,
    "too far up": record(TREE, PLACE.encode()) + record(FOLDER, b"a") + record(UP) * 2 + END,
    "a name with a slash": record(TREE, PLACE.encode()) + record(FILE, b"a/b") + END,
    "an absolute name": record(TREE, PLACE.encode()) + record(FILE, b"/tmp/a") + END,
    "the folder above": record(TREE, PLACE.encode()) + record(FOLDER, b"..") + record(FILE, b"a") + END,
    "the folder itself": record(TREE, PLACE.encode()) + record(FOLDER, b".") + END,
    "no name": record(TREE, PLACE.encode()) + record(FILE, b"") + END,
    "a name with NUL": record(TREE, PLACE.encode()) + record(FILE, b"a\0b") + END,
    "an endless name": HEADER.pack(FILE, 0, 0, 0, 2**32 - 1, 0, 0, 0) + b"x" * 10_000 + END,
    "an endless place": HEADER.pack(TREE, 0, 0, 0, 2**31, 0, 0, 0) + END,
    "an endless file": record(TREE, PLACE.encode()) + record(FILE, b"a", size=2**64 - 1) + b"x" * 1000 + END,
    "an endless link": record(TREE, PLACE.encode()) + record(LINK, b"a", size=2**63) + END,
    "an unknown kind": record(TREE, PLACE.encode()) + record(ord("Z"), b"a") + END,
    "other words": b"Error response from daemon: no such container, and some more words behind that\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_answers_are_refused(tmp_path, name):
    place = tmp_path / "inner" / "place"
    place.mkdir(parents=True)
    with pytest.raises((InfrastructureError, EOFError)):
        archive.unpack(reader(HOSTILE[name]), {PLACE: place})
    assert [path.name for path in tmp_path.iterdir()] == ["inner"]
    assert [path.name for path in place.parent.iterdir()] == ["place"]


def test_more_than_anyone_can_use_is_refused(tmp_path):
    part = record(FILE, b"a", content=b"x" * 600) + record(FILE, b"b", content=b"x" * 600)
    with pytest.raises(InfrastructureError, match="more than 4 GB"):
        archive.unpack(reader(record(TREE, PLACE.encode()) + part + END), {PLACE: tmp_path}, size=1000)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_is_there_is_not_written_over(tmp_path):
    place, outside = tmp_path / "place", tmp_path / "outside"
    place.mkdir()
    (place / "own").write_text("mine")
    outside.write_text("untouched")
    (place / "link").symlink_to(outside)
    parts = [record(FILE, name, content=b"forged") for name in (b"own", b"link", b"new")]
    archive.unpack(reader(record(TREE, PLACE.encode()) + b"".join(parts) + END), {PLACE: place})
    assert (place / "own").read_text() == "mine"
    assert outside.read_text() == "untouched"
    assert (place / "new").read_text() == "forged"


def test_a_folder_through_a_link_is_refused(tmp_path):
    place, outside = tmp_path / "place", tmp_path / "outside"
    for folder in (place, outside):
        folder.mkdir()
    (place / "link").symlink_to(outside)
    answer = record(TREE, PLACE.encode()) + record(FOLDER, b"link") + record(FILE, b"forged") + record(UP) + END
    with pytest.raises(InfrastructureError, match="something else"):
        archive.unpack(reader(answer), {PLACE: place})
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("kind", [LINK, PIPE, SOCKET])
def test_no_other_kind_of_file_is_made(tmp_path, kind):
    content = b"/etc/passwd" if kind == LINK else b""
    answer = record(TREE, PLACE.encode()) + record(kind, b"a", content=content) + record(FILE, b"b") + END
    archive.unpack(reader(answer), {PLACE: tmp_path})
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.e2e
@pytest.mark.parametrize(
    "answer",
    [
        record(FILE, b"../planted"),
        record(FOLDER, b".."),
        record(FILE, b"a/b"),
        record(ord("Z"), b"a"),
        record(FILE, b"a", size=1 << 40),
        HEADER.pack(FILE, 0, 0, 0, 1 << 20, 0, 0, 0),
        record(LINK, b"a", size=1 << 20),
        record(FILE, b"a") * 2,
        b"",
    ],
)
def test_the_helper_refuses_what_is_no_tree(helper, tmp_path, answer):
    target = tmp_path / "place" / "target"
    user = [str(os.getuid()), str(os.getgid())]
    done = subprocess.run(
        [helper, "pair", "--unpack", *user, "--judge", "/bin/true"],
        input=record(TREE, os.fsencode(target)) + answer,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode != 0
    assert done.stderr.startswith(b"slop-code: ")
    assert [path.name for path in tmp_path.iterdir()] == ["place"]
    assert [path.name for path in target.parent.iterdir()] == ["target"]
