"""Trees as tar streams: Python packs and the helper unpacks, and the reverse; hostile archives are refused."""

from __future__ import annotations

import contextlib
import io
import os
import select
import socket
import stat
import subprocess
import tarfile

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution.submission import CHUNK, RESERVED, summarize
from slop_code.execution.trees import archive
from tests.execution.tar_members import END, attributes, exit_status, line, member, patched

TIMEOUT_S = 30
USER = (os.getuid(), os.getgid())
ODD_NAMES = [b"caf\xe9", b"\xff\xfe", b"new\nline", b"-rf", b" ", b"\x1b[2J", b"a" * 255, "ü".encode(), b"...", b"~"]
ODD_NAMES += [b"a" * 99, b"a" * 100, b"a" * 101, b"back\\slash", b"key=value", b"trailing "]


def reader(data):
    left = [data]

    def read(size):
        part, left[0] = left[0][:size], left[0][size:]
        return part

    return read


def tree(root, *, times=True):
    """Every path below a folder with its kind, mode, content or target, and a file's time; by descriptors."""
    entries = {}
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
            entries[relative] = (kind, 0 if kind == stat.S_IFLNK else stat.S_IMODE(info.st_mode), what, changed)
    return entries


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
def unpack(helper, tmp_path):
    """Let `slopbox init` unpack parts, the tree `t` to `target`, and take steps after that.

    Its exit status, what it prints, and its errors.
    """

    def run(parts, *steps):
        trees = ["--tree", "t", tmp_path / "target", "--unpack", *map(str, USER)]
        argv = [helper, "init", *trees, *steps, "--judge", "/bin/true"]
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
                assert select.select([descriptor], [], [], TIMEOUT_S)[0]
            finally:
                os.close(descriptor)
            errors = process.stderr.read()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        return process.returncode, printed, errors

    return run


@pytest.fixture
def sent(unpack, given, tmp_path):
    """The same tree as the helper unpacked it."""

    def send(owner=USER):
        status, printed, errors = unpack([*archive.pack_tree(given, "t", owner=owner), END], "--ready")
        assert (status, printed, errors[:300]) == (0, b"ready 0 0 0\n" + finished(0), b"")
        return tmp_path / "target"

    return send


def finished(status):
    """What the helper sends of no folder at all: the judge's status in an archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        info = tarfile.TarInfo(archive.STATUS)
        info.size = len(str(status))
        tar.addfile(info, io.BytesIO(str(status).encode()))
    return packed.getvalue()


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
    (folder / "inner" / "large").write_bytes(os.urandom(3 * CHUNK + 17))
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
    assert tree(sent()) == tree(given)


def test_a_summary_counts_entries_and_bytes(given):
    fill(given)
    measured = summarize(given, 1 << 30)
    assert measured.entries == len(tree(given))
    assert measured.size == sum(len(what) for kind, _, what, _ in tree(given).values() if kind == stat.S_IFREG)
    assert measured.space >= measured.size


@pytest.mark.e2e
def test_the_helper_sums_up_a_copy_as_python_does(helper, given, tmp_path):
    """So that a folder of the same name on another machine is not taken for the submission."""
    fill(given)
    for name in (".scbench", ".evaluation_tests"):
        (given / name).mkdir()
    user = [str(os.getuid()), str(os.getgid())]
    argv = [helper, "init", "--copy", given, tmp_path / "copy", *user, "--ready", "--judge", "/bin/true"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        ready = process.stdout.readline()
        process.stdout.read()
    expected = {name: entry for name, entry in tree(given).items() if os.fsdecode(name) not in RESERVED}
    assert tree(tmp_path / "copy") == expected
    measured = summarize(given, 1 << 30)
    assert ready.decode() == f"ready {measured.entries} {measured.size} {measured.checksum}\n"


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
def test_a_tree_that_differs_has_another_summary(given, change):
    (given / "inner").mkdir()
    (given / "inner" / "a").write_text("first")
    (given / "b").touch()
    (given / "link").symlink_to("x")
    before = summarize(given, 1 << 30)
    change(given)
    assert summarize(given, 1 << 30) != before


@pytest.mark.e2e
def test_set_user_id_is_not_carried_over(given, sent):
    (given / "program").touch()
    (given / "program").chmod(0o6755)
    assert stat.S_IMODE((sent() / "program").stat().st_mode) == 0o755


@pytest.mark.e2e
def test_what_is_ours_can_be_read_by_all_and_written_by_none(given, sent):
    (given / "folder").mkdir(mode=0o700)
    (given / "folder" / "file").touch(mode=0o600)
    (given / "program").touch()
    (given / "program").chmod(0o777)
    modes = {os.fsdecode(name): mode for name, (_, mode, _, _) in tree(sent(owner=None)).items()}
    assert modes == {"folder": 0o755, "folder/file": 0o644, "program": 0o755}


@pytest.mark.e2e
def test_reserved_names_of_a_submission_stay_out(given, unpack, tmp_path):
    for name in (".scbench", ".evaluation_tests", "inner/.scbench"):
        (given / name).mkdir(parents=True)
        (given / name / "planted").touch()
    assert unpack([*archive.pack_tree(given, "t", owner=USER, without=RESERVED), END])[0] == 0
    assert {os.fsdecode(name) for name in tree(tmp_path / "target")} == {
        "inner", "inner/.scbench", "inner/.scbench/planted",
    }  # fmt: skip


@pytest.mark.e2e
def test_a_tree_may_be_below_another_name(given, unpack, tmp_path):
    (given / "file").touch()
    packed = [*archive.pack_tree(given, "t/a"), *archive.pack_tree(given / "file", "t/b")]
    assert unpack([*packed, *archive.pack_file(b"x", "t/c"), END])[0] == 0
    assert {os.fsdecode(name) for name in tree(tmp_path / "target")} == {"a", "a/file", "b", "c"}


@pytest.mark.e2e
def test_a_tree_deeper_than_a_path_may_be_long(given, sent):
    deep(given, 400)
    target = sent()
    assert tree(target) == tree(given)
    assert any(len(name) > 20_000 for name in tree(target))
    subprocess.run(["rm", "-rf", given, target], check=True)


@pytest.mark.e2e
@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_what_may_not_be_read_is_there_and_empty(given, sent):
    (given / "file").write_text("secret")
    (given / "file").chmod(0)
    (given / "folder").mkdir()
    (given / "folder" / "inner").touch()
    (given / "folder").chmod(0)
    target = sent()
    assert (target / "file").stat().st_size == 0
    (given / "folder").chmod(0o700)


@pytest.mark.e2e
def test_a_file_that_shrinks_or_grows_while_it_is_sent(given, unpack, tmp_path):
    """As many bytes as were announced: what comes behind it stays where it belongs."""
    size = 3 * CHUNK
    for name in ("1-shrinks", "2-grows"):
        (given / name).write_bytes(b"x" * size)
    (given / "3-last").write_text("whole")

    def parts():
        for part in archive.pack_tree(given, "t"):
            if b"1-shrinks" in part:
                os.truncate(given / "1-shrinks", 10)
            if b"2-grows" in part:
                with (given / "2-grows").open("ab") as file:
                    file.write(b"y" * 1000)
            yield part
        yield END

    status, _, errors = unpack(parts())
    assert (status, errors) == (0, b"")
    contents = {path.name: path.read_bytes() for path in (tmp_path / "target").iterdir()}
    assert contents == {"1-shrinks": b"x" * 10 + bytes(size - 10), "2-grows": b"x" * size, "3-last": b"whole"}


@pytest.mark.e2e
def test_python_unpacks_what_the_helper_packs(given, unpack, tmp_path):
    """Files and folders only: links, pipes and sockets are no reports and are left out."""
    fill(given)
    deep(given, 300)
    status, printed, errors = unpack([END], "--ready", "--send", "reports", given)
    assert (status, errors) == (0, b"")
    ready, _, answer = printed.partition(b"\n")
    assert ready.startswith(b"ready ")
    back = tmp_path / "back"
    back.mkdir()
    assert archive.unpack_reports(reader(answer), {"reports": back}) == 0
    wanted = {
        name: (kind, what, changed)
        for name, (kind, _, what, changed) in tree(given).items()
        if kind in (stat.S_IFREG, stat.S_IFDIR)
    }
    assert {name: (kind, what, time) for name, (kind, _, what, time) in tree(back).items()} == wanted


@pytest.mark.e2e
def test_the_status_of_the_judge_comes_last(helper, given):
    argv = [helper, "init", "--ready", "--send", "reports", given, "--judge", "/bin/sh", "-c", "exit 5"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        ready, _, answer = process.stdout.read().partition(b"\n")
    assert ready.startswith(b"ready ")
    assert os.WEXITSTATUS(archive.unpack_reports(reader(answer), {"reports": given})) == 5


@pytest.mark.e2e
def test_a_tree_travels_to_another_machine(given, tmp_path):
    fill(given)
    deep(given, 300)
    (given / "closed").mkdir()
    (given / "closed" / "inner").touch()
    (given / "closed").chmod(0o500)
    (given / "1777").chmod(0o777)
    packed = io.BytesIO(b"".join([*archive.pack_tree(given, "t", owner=(0, 0)), END]))
    archive.unpack_tree(packed, tmp_path / "back")
    assert tree(tmp_path / "back") == tree(given)


HOSTILE = {
    "nothing": b"",
    "half a header": member("t/a")[:-1],
    "a file that breaks off": member("t/a", size=1000) + b"x" * 999,
    "no end": member("t/a"),
    "one block of zeros": bytes(512) + member("t/a"),
    "another tree": member("u/a"),
    "no tree": member("a"),
    "no name": member(""),
    "a tree that is a file": member("t"),
    "an absolute name": member("/tmp/a"),
    "a tree with a slash": member("/t/a"),
    "the folder above": member("t/../a"),
    "the folder above at the end": member("t/..", tarfile.DIRTYPE),
    "the folder above first": member("../t/a"),
    "the folder itself": member("t/./a"),
    "an empty part": member("t//a"),
    "a folder that was not sent": member("t/folder/a"),
    "a file as a folder": member("t/a") + member("t/a/b"),
    "a link as a folder": member("t/a", tarfile.SYMTYPE, target="/tmp") + member("t/a/b"),
    "a file twice": member("t/a") + member("t/a"),
    "a folder twice": member("t/a", tarfile.DIRTYPE) + member("t/a", tarfile.DIRTYPE),
    "a file and a folder": member("t/a") + member("t/a", tarfile.DIRTYPE),
    "a file through a link": member("t/a", tarfile.SYMTYPE, target="b") + member("t/a"),
    "a long name": member("t/" + "a" * 256),
    "a path without an end": member("t/" + "a/" * (1 << 17)),
    "a NUL in a name": attributes(line(b"path=t/a\0bc")) + member("t/x"),
    "a NUL in a target": attributes(line(b"linkpath=a\0b")) + member("t/a", tarfile.SYMTYPE),
    "attributes without an end": attributes(b"", size=8**11 - 1) + bytes(1 << 20),
    "attributes twice": attributes(line(b"path=t/a")) + attributes(line(b"path=t/a")) + member("t/a"),
    "attributes of nothing": attributes(line(b"path=t/a")),
    "an attribute that is too long": attributes(b"99 path=t/a\n") + member("t/a"),
    "an attribute of no length": attributes(b"path=t/a\n") + member("t/a"),
    "an attribute of length 0": attributes(b"0 path=t/a\n") + member("t/a"),
    "an attribute without a value": attributes(line(b"path")) + member("t/a"),
    "an unknown attribute": attributes(line(b"GNU.sparse.size=1")) + member("t/a"),
    "a size that is no number": attributes(line(b"size=-1")) + member("t/a"),
    "a size of 19 digits": attributes(line(b"size=9999999999999999999")) + member("t/a"),
    "a size beyond all": attributes(line(b"size=999999999999999999")) + member("t/a"),
    "a time that is no number": attributes(line(b"mtime=nan")) + member("t/a"),
    "a file of 8 GB": member("t/a", size=8**11 - 1) + b"x" * 1000,
    "a folder with content": member("t/a", tarfile.DIRTYPE, size=512) + bytes(512),
    "a hard link": member("t/a") + member("t/b", tarfile.LNKTYPE, target="t/a"),
    "a hard link to the outside": member("t/b", tarfile.LNKTYPE, target="/etc/passwd"),
    "a character device": member("t/a", tarfile.CHRTYPE),
    "a block device": member("t/a", tarfile.BLKTYPE),
    "a sparse file": member("t/a", tarfile.GNUTYPE_SPARSE),
    "a GNU long name": member("././@LongLink", tarfile.GNUTYPE_LONGNAME, content=b"t/b") + member("t/a"),
    "global attributes": attributes(line(b"path=t/b"), tarfile.XGLTYPE) + member("t/a"),
    "an unknown kind": member("t/a", b"Z"),
    "another owner": member("t/a", owner=(4711, 4712)),
    "another owner with a large number": member("t/a", owner=(4_000_000_000, 4_000_000_000)),
    "a checksum that is wrong": member("t/a").replace(b"t/a", b"t/b"),
    "the old format": member("t/a").replace(b"ustar\0" + b"00", bytes(8)),
    "a binary number": patched(member("t/a"), 124, b"\x80"),
    "other words": b"Error response from daemon: no such container, and some more words behind that\n" * 9,
}
REASONS = {
    "nothing": "the input ends too early",
    "half a header": "the input ends too early",
    "a file that breaks off": "the input ends too early",
    "no end": "the input ends too early",
    "one block of zeros": "a single block of zeros",
    "another tree": "a name is in no tree",
    "no tree": "a name is in no tree",
    "no name": "a name is in no tree",
    "a tree that is a file": "a tree is no folder",
    "an absolute name": "a name is in no tree",
    "a tree with a slash": "a name is in no tree",
    "the folder above": "a name leads elsewhere",
    "the folder above at the end": "a name leads elsewhere",
    "the folder above first": "a name is in no tree",
    "the folder itself": "a name leads elsewhere",
    "an empty part": "a name leads elsewhere",
    "a folder that was not sent": "cannot enter folder: No such file or directory",
    "a file as a folder": "cannot enter a: Not a directory",
    "a link as a folder": "cannot enter a: Not a directory",
    "a file twice": "cannot write a: File exists",
    "a folder twice": "cannot make a: File exists",
    "a file and a folder": "cannot make a: File exists",
    "a file through a link": "cannot write a: File exists",
    "a long name": "a name leads elsewhere",
    "a path without an end": "attributes are too long",
    "a NUL in a name": "an attribute has a NUL",
    "a NUL in a target": "an attribute has a NUL",
    "attributes without an end": "attributes are too long",
    "attributes twice": "a member is no file, folder, symbolic link or pipe",
    "attributes of nothing": "attributes of nothing",
    "an attribute that is too long": "an attribute has a wrong length",
    "an attribute of no length": "an attribute has no length",
    "an attribute of length 0": "an attribute has a wrong length",
    "an attribute without a value": "an attribute has no value",
    "an unknown attribute": "an attribute is unknown",
    "a size that is no number": "an attribute is no number",
    "a size of 19 digits": "an attribute is no number",
    "a size beyond all": "it is too large",
    "a time that is no number": "an attribute is no number",
    "a file of 8 GB": "the input ends too early",
    "a folder with content": "a member has content and is no file",
    "a hard link": "a member is no file, folder, symbolic link or pipe",
    "a hard link to the outside": "a member is no file, folder, symbolic link or pipe",
    "a character device": "a member is no file, folder, symbolic link or pipe",
    "a block device": "a member is no file, folder, symbolic link or pipe",
    "a sparse file": "a member is no file, folder, symbolic link or pipe",
    "a GNU long name": "a member is no file, folder, symbolic link or pipe",
    "global attributes": "a member is no file, folder, symbolic link or pipe",
    "an unknown kind": "a member is no file, folder, symbolic link or pipe",
    "another owner": "a member belongs to a stranger",
    "another owner with a large number": "a member belongs to a stranger",
    "a checksum that is wrong": "a header has a wrong checksum",
    "the old format": "it is no ustar archive",
    "a binary number": "a number is not octal",
    "other words": "it is no ustar archive",
}
"""Of the helper: each archive is refused for the reason that it is here for."""

CUT = ("nothing", "half a header", "a file that breaks off", "no end")


@pytest.mark.e2e
@pytest.mark.parametrize("name", HOSTILE)
def test_the_helper_refuses_a_hostile_archive(helper, tmp_path, name):
    target = tmp_path / "folder" / "target"
    done = subprocess.run(
        [helper, "init", "--tree", "t", target, "--unpack", *map(str, USER), "--judge", "/bin/true"],
        input=HOSTILE[name] + (b"" if name in CUT else END),
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    assert (done.returncode, done.stdout) == (125, b"")
    reason = done.stderr.decode().removeprefix("slop-code: ").removeprefix("the archive is refused: ")
    assert reason == f"{REASONS[name]}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert [path.name for path in target.parent.iterdir()] == ["target"]


TAKEN_BY_PYTHON = {
    "attributes twice": ["a"], "an attribute of no length": ["a"], "an attribute without a value": ["a"],
    "a GNU long name": ["b"], "another owner": ["a"], "another owner with a large number": ["a"],
    "a size that is no number": [],
}  # fmt: skip
"""By some versions of tarfile, with these files. Without harm: names are checked as tarfile reads them, owners mean
nothing on the host, and a member that is left out leaves no report."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_reports_are_refused(tmp_path, name):
    folder = tmp_path / "inner" / "folder"
    folder.mkdir(parents=True)
    answer = HOSTILE[name] + (b"" if name in CUT else exit_status(0) + END)
    try:
        status = archive.unpack_reports(reader(answer), {"t": folder})
    except (InfrastructureError, EOFError):
        pass
    else:
        assert (status, [path.name for path in folder.iterdir()]) == (0, TAKEN_BY_PYTHON[name])
    assert [path.name for path in tmp_path.iterdir()] == ["inner"]
    assert [path.name for path in folder.parent.iterdir()] == ["folder"]
    for path in folder.rglob("*"):
        assert stat.S_IFMT(path.lstat().st_mode) in (stat.S_IFDIR, stat.S_IFREG)


@pytest.mark.parametrize("text", [b"", b"-1", b"x", b"1 ", b"1234567", b"1" * 100_000])
def test_a_status_that_is_none_is_refused(tmp_path, text):
    answer = member(archive.STATUS, content=text) + END
    with pytest.raises(InfrastructureError):
        archive.unpack_reports(reader(answer), {"t": tmp_path})


def test_more_than_anyone_can_use_is_refused(tmp_path):
    part = member("t/a", content=b"x" * 600) + member("t/b", content=b"x" * 600)
    with pytest.raises(InfrastructureError, match="more than 1000 bytes of reports; let the tests print less"):
        archive.unpack_reports(reader(part + exit_status(0) + END), {"t": tmp_path}, max_size=1000)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_too_many_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_MEMBERS", 2)
    parts = [member(f"t/{name}") for name in "abc"]
    with pytest.raises(InfrastructureError, match="too many files"):
        archive.unpack_reports(reader(b"".join([*parts, exit_status(0), END])), {"t": tmp_path})


def test_what_is_there_is_not_written_over(tmp_path):
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    (folder / "own").write_text("mine")
    outside.write_text("untouched")
    (folder / "link").symlink_to(outside)
    parts = [member(f"t/{name}", content=b"forged") for name in ("own", "link", "new")]
    archive.unpack_reports(reader(b"".join([*parts, exit_status(0), END])), {"t": folder})
    assert (folder / "own").read_text() == "mine"
    assert outside.read_text() == "untouched"
    assert (folder / "new").read_text() == "forged"


def test_a_folder_through_a_link_is_refused(tmp_path):
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    for path in (folder, outside):
        path.mkdir()
    (folder / "link").symlink_to(outside)
    answer = member("t/link", tarfile.DIRTYPE) + member("t/link/forged") + exit_status(0) + END
    with pytest.raises(InfrastructureError, match="is no folder"):
        archive.unpack_reports(reader(answer), {"t": folder})
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.FIFOTYPE])
def test_reports_are_files_and_folders_only(tmp_path, kind):
    answer = member("t/a", kind, target="/etc/passwd") + exit_status(0) + END
    with pytest.raises(InfrastructureError, match="nobody asked for"):
        archive.unpack_reports(reader(answer), {"t": tmp_path})
    assert list(tmp_path.iterdir()) == []
