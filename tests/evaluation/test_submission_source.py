"""Submissions that are no folder: archives and mappings become the folder they describe, and hostile ones nothing."""

from __future__ import annotations

import gzip
import io
import os
import random
import stat
import tarfile
from typing import TYPE_CHECKING

import pytest

from slop_code.errors import InfrastructureError, SubmissionError, UsageError
from slop_code.evaluation.evaluator import member_names, submission_source
from slop_code.evaluation.evaluator.submission_source import check_source, submission_folder
from slop_code.execution.cache import Cache
from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope
from slop_code.execution.submission import tree_digest
from tests.execution.tar_members import END, attributes, line, member, patched

if TYPE_CHECKING:
    from pathlib import Path

LINK, HARD, FOLDER = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
SIZE_FIELD, TYPE_FIELD = 124, 156
LONG = "n" * 256
DEEP = "/".join(["d"] * 402)


@pytest.fixture
def own_cache(tmp_path: Path) -> Cache:
    return Cache.at(tmp_path / "cache")


def link(name: str, target: str) -> bytes:
    return member(name, LINK, target=target)


OUTSIDE = "it leads outside of the folder"
LINK_OUT = "the link leads outside of the folder"
KIND = "it is neither a file, a folder nor a symbolic link"
TWICE = "there are two of this name"
DAMAGED = "not a tar archive, plain or compressed with gzip, or one that is damaged or ends early"
NO_END = "the archive has a member whose header has no end"

HOSTILE_ARCHIVES = {
    "absolute": (member("/etc/x"), "'/etc/x'", "it is an absolute path"),
    "absolute with two slashes": (member("//x"), "'//x'", "it is an absolute path"),
    "parent": (member("../x"), "'../x'", OUTSIDE),
    "parent alone": (member("..", FOLDER), "'..'", OUTSIDE),
    "parent behind a folder": (member("a/../../x"), "'a/../../x'", OUTSIDE),
    "parent that stays inside": (member("a/../x"), "'a/../x'", OUTSIDE),
    "parent behind dots": (member("./../x"), "'./../x'", OUTSIDE),
    "parent at the end": (member("a/..", FOLDER), "'a/..'", OUTSIDE),
    "parent in pax attributes": (attributes(line(b"path=../x")) + member("x"), "'../x'", OUTSIDE),
    "absolute in pax attributes": (attributes(line(b"path=/x")) + member("x"), "'/x'", "it is an absolute path"),
    "NUL in pax attributes": (attributes(line(b"path=a\0b")) + member("x"), "'a\\x00b'", "the name has a NUL"),
    "parent in a global header": (
        attributes(line(b"path=../x"), tarfile.XGLTYPE) + member("x"), "'../x'", OUTSIDE),
    "parent in a GNU long name": (
        member("././@LongLink", tarfile.GNUTYPE_LONGNAME, content=b"../x\0") + member("x"), "'../x'", OUTSIDE),
    "empty": (member(""), "''", "it is an empty name"),
    "dot as a file": (member("."), "'.'", "it is an empty name"),
    "dot as a link": (link(".", "a"), "'.'", "it is an empty name"),
    "long name": (member(f"a/{LONG}"), "'a/nnn", "a name has more than 255 bytes"),
    "long name in bytes": (member("ü" * 128), "'üüü", "a name has more than 255 bytes"),
    "deep": (member(DEEP), "'d/d/d", "it is nested more than 400 folders deep"),
    "deep folder": (member(DEEP, FOLDER), "'d/d/d", "it is nested more than 400 folders deep"),
    "link to an absolute path": (link("l", "/etc/passwd"), "'l'", f"{LINK_OUT}, to '/etc/passwd'"),
    "link to the root": (link("l", "/"), "'l'", LINK_OUT),
    "link to the parent": (link("l", ".."), "'l'", LINK_OUT),
    "link beside the folder": (link("l", "../x"), "'l'", LINK_OUT),
    "link through a folder": (link("a/l", "../../x"), "'a/l'", LINK_OUT),
    "link through what does not exist": (link("l", "b/../../x"), "'l'", LINK_OUT),
    "link through a link": (link("a/up", "..") + link("l", "a/up/../x"), "'l'", LINK_OUT),
    "link through a later link": (link("l", "a/up/../x") + link("a/up", ".."), "'l'", LINK_OUT),
    "link through two links": (
        link("p", "a/b") + link("a/b/q", "../..") + link("l", "p/q/../x"), "'l'", LINK_OUT),
    "link to a link that leaves": (link("l", "m") + link("m", "../x"), "'l'", LINK_OUT),
    "link with dots": (link("l", "./././../x"), "'l'", LINK_OUT),
    "link with empty parts": (link("a/l", "..//..//x"), "'a/l'", LINK_OUT),
    "link to nothing": (link("l", ""), "'l'", "it is a link to nowhere"),
    "link with a long target": (link("l", "x/" * 2048), "'l'", "it is a link to nowhere"),
    "link with a long name in it": (link("l", LONG), "'l'", "it is a link to a name of more than 255 bytes"),
    "link with a NUL": (attributes(line(b"linkpath=a\0b")) + link("l", "a"), "'l'", "it is a link to nowhere"),
    "file in a link": (link("l", "a") + member("l/x"), "'l/x'", "'l' is no folder"),
    "file in a link to a folder": (
        member("a", FOLDER) + link("l", "a") + member("l/x"), "'l/x'", "'l' is no folder"),
    "file in a file": (member("a") + member("a/x"), "'a/x'", "'a' is no folder"),
    "folder in a file": (member("a") + member("a/x", FOLDER), "'a/x'", "'a' is no folder"),
    "file twice": (member("a") + member("a"), "'a'", TWICE),
    "file twice in other words": (member("a/b") + member("./a//b"), "'./a//b'", TWICE),
    "folder twice": (member("a", FOLDER) + member("./a", FOLDER), "'./a'", TWICE),
    "root twice": (member("./", FOLDER) + member(".", FOLDER), "'.'", TWICE),
    "link twice": (link("l", "a") + link("l", "b"), "'l'", TWICE),
    "link over a file": (member("a") + link("a", "b"), "'a'", TWICE),
    "file over a link": (link("a", "b") + member("a"), "'a'", TWICE),
    "file over a folder": (member("a", FOLDER) + member("a"), "'a'", TWICE),
    "file over a folder of another": (member("a/x") + member("a"), "'a'", TWICE),
    "folder over a file": (member("a") + member("a", FOLDER), "'a'", TWICE),
    "link over a folder of another": (member("a/x") + link("a", "b"), "'a'", TWICE),
    "hard link": (member("a") + member("b", HARD, target="a"), "'b'", "it is a hard link"),
    "hard link outside": (member("b", HARD, target="/etc/passwd"), "'b'", "it is a hard link"),
    "character device": (member("d", tarfile.CHRTYPE), "'d'", KIND),
    "block device": (member("d", tarfile.BLKTYPE), "'d'", KIND),
    "pipe": (member("d", tarfile.FIFOTYPE), "'d'", KIND),
    "contiguous file": (member("d", tarfile.CONTTYPE), "'d'", KIND),
    "unknown kind": (patched(member("d"), TYPE_FIELD, b"Z"), "'d'", KIND),
    "volume label": (member("d", b"V"), "'d'", KIND),
    "dump of a folder": (member("d", b"D"), "'d'", KIND),
    "sparse file": (
        attributes(line(b"GNU.sparse.map=0,1") + line(b"GNU.sparse.size=9")) + member("d", content=b"x"),
        "'d'", "it is a sparse file"),
    "negative size": (patched(member("d"), SIZE_FIELD, b"\xff" * 12), "", ""),
    "negative size in pax attributes": (attributes(line(b"size=-5")) + member("d"), "", ""),
    "size of another planet": (attributes(line(b"size=%d" % 2**70)) + member("d"), "'d'", "more than 16 GiB"),
    "17 GiB": (member("d", size=17 << 30), "'d'", "more than 16 GiB"),
    "a time that is none": (attributes(line(b"mtime=nan")) + member("d"), "'d'", "a time that is none"),
    "a header without end": (member("d", tarfile.GNUTYPE_LONGNAME, content=b"n" * (1 << 19)), "", NO_END),
    "attributes without end": (attributes(b"9" * (1 << 19)), "", NO_END),
    "attributes of no length": (attributes(b"0 path=x\n") + member("d"), "", DAMAGED),
    "a header that says more than there is": (member("d", tarfile.GNUTYPE_LONGNAME, size=1 << 40), "", DAMAGED),
    "a damaged header": (member("a") + patched(member("b"), 0, b"b")[:148] + b"9" * 8 + bytes(356), "", DAMAGED),
    "text": (b"print('hello')\n" * 100, "", DAMAGED),
    "zip": (b"PK\x03\x04" + bytes(600), "", DAMAGED),
    "xz": (b"\xfd7zXZ\0" + bytes(600), "", DAMAGED),
}  # fmt: skip


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("kind", HOSTILE_ARCHIVES)
def test_a_hostile_archive_is_refused_and_leaves_nothing(kind, compressed, own_cache, tmp_path):
    members, name, fact = HOSTILE_ARCHIVES[kind]
    archive = member("main.py", content=b"pass") + members + END
    if kind in ("text", "zip", "xz"):
        archive = members
    with (
        pytest.raises(SubmissionError) as refused,
        submission_folder(gzip.compress(archive) if compressed else archive, own_cache),
    ):
        pytest.fail("unpacked")
    assert str(refused.value).startswith("submission: ")
    assert name in str(refused.value)
    assert fact in str(refused.value)
    assert len(str(refused.value)) < 1000
    assert everything_in(tmp_path) <= {"cache", "cache/sessions"}


def everything_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_an_archive_that_ends_anywhere_early_is_refused(own_cache, compressed):
    """Also between two members, where a submission with a file less would be evaluated."""
    whole = b"".join([member("a", content=b"1" * 700), link("l", "a"), member("main.py", content=b"pass")])
    packed = gzip.compress(whole + END) if compressed else whole + END[:512]
    ends = range(1, len(packed) - 8) if compressed else range(0, len(packed) - 1, 64)
    for end in ends:
        with pytest.raises(SubmissionError), submission_folder(packed[:end], own_cache):
            pytest.fail(f"{end} of {len(packed)} bytes were enough")
    with submission_folder(packed, own_cache) as folder:
        assert everything_in(folder) == {"a", "l", "main.py"}


def test_damage_of_compressed_content_is_found(own_cache):
    """Though the checksum stands behind the end of the archive, and much padding."""
    content = random.Random(1).randbytes(5000)  # of some contents, the changed bit would leave no member at all
    packed = bytearray(gzip.compress(member("main.py", content=content) + END + bytes(1 << 16), mtime=0))
    packed[3000] ^= 1
    with pytest.raises(SubmissionError, match="damaged"), submission_folder(bytes(packed), own_cache):
        pytest.fail("unpacked")


def test_padding_of_a_compressed_archive_is_read_up_to_a_bound(own_cache):
    archive = member("main.py", content=b"pass") + END
    with submission_folder(gzip.compress(archive + bytes(1 << 20)), own_cache) as folder:
        assert everything_in(folder) == {"main.py"}
    packed = io.BytesIO(gzip.compress(archive) + gzip.compress(bytes(1 << 20)) * 1000)
    with pytest.raises(SubmissionError, match="more than 1 MiB after its end"), submission_folder(packed, own_cache):
        pytest.fail("unpacked")
    assert packed.tell() < len(packed.getbuffer()) // 2, "most of it was not read"


HOSTILE_MAPPINGS = {
    "absolute": ({"/x": ""}, "submission: '/x': it is an absolute path"),
    "parent": ({"../x": ""}, f"submission: '../x': {OUTSIDE}"),
    "parent in the middle": ({"a/../x": ""}, f"submission: 'a/../x': {OUTSIDE}"),
    "parent at the end": ({"a/..": ""}, f"submission: 'a/..': {OUTSIDE}"),
    "empty": ({"": ""}, "submission: '': it is an empty name"),
    "dot": ({".": ""}, "submission: '.': it is an empty name"),
    "folder": ({"a/": ""}, "submission: 'a/': it is the name of a folder"),
    "slash": ({"/": ""}, "submission: '/': it is the name of a folder"),
    "NUL": ({"a\0": ""}, "submission: 'a\\x00': the name has a NUL character"),
    "long": ({LONG: ""}, "submission: 'nnn"),
    "deep": ({DEEP: ""}, "submission: 'd/d/d"),
    "surrogate": ({"\ud800": ""}, "submission: '\\ud800': the name has characters that cannot be encoded"),
    "twice": ({"a": "", "./a": ""}, f"submission: './a': {TWICE}"),
    "twice with empty parts": ({"a/b": "", "a//b": ""}, f"submission: 'a//b': {TWICE}"),
    "in a file": ({"a": "", "a/b": ""}, "submission: 'a/b': 'a' is no folder"),
    "over a folder": ({"a/b": "", "a": ""}, f"submission: 'a': {TWICE}"),
    "name of bytes": ({b"a": ""}, "submission: a name must be a text, found bytes"),
    "name of a number": ({1: ""}, "submission: a name must be a text, found int"),
    "content of a number": ({"a": 1}, "submission: 'a': its content must be a text or bytes, found int"),
    "no content": ({"a": None}, "submission: 'a': its content must be a text or bytes, found NoneType"),
    "content of lines": ({"a": ["x"]}, "submission: 'a': its content must be a text or bytes, found list"),
    "nested": ({"a": {"b": ""}}, "submission: 'a': its content must be a text or bytes, found dict"),
    "text that cannot be encoded": ({"a": "\ud800"}, "submission: 'a': its text has characters that cannot"),
}


@pytest.mark.parametrize("kind", HOSTILE_MAPPINGS)
def test_a_hostile_mapping_is_refused_and_leaves_nothing(kind, own_cache, tmp_path):
    files, message = HOSTILE_MAPPINGS[kind]
    with pytest.raises(SubmissionError) as refused, submission_folder(files, own_cache):
        pytest.fail("unpacked")
    assert str(refused.value).startswith(message)
    assert everything_in(tmp_path) <= {"cache", "cache/sessions"}


@pytest.mark.parametrize(
    ("name", "bound", "source", "fact"),
    [
        ("MAX_BYTES", 10, {"a": b"12345", "b": b"123456"}, "'b': the files have more than"),
        ("MAX_BYTES", 10, member("a", content=b"12345") + member("b", content=b"123456") + END, "'b': the files"),
        ("MAX_ENTRIES", 4, {"a/b/c": "", "d": ""}, "'d': there are more than 4 files and folders"),
        ("MAX_ENTRIES", 4, member("a/b/c") + link("d", "a") + END, "'d': there are more than 4 files and folders"),
    ],
)
def test_too_large_and_too_many_members_are_refused(name, bound, source, fact, own_cache, monkeypatch):
    monkeypatch.setattr(submission_source if name == "MAX_BYTES" else member_names, name, bound)
    with pytest.raises(SubmissionError) as refused, submission_folder(source, own_cache):
        pytest.fail("unpacked")
    assert fact in str(refused.value)


HARMLESS_LINKS = {
    "beside it": {"l": "a"},
    "in a folder": {"l": "d/a", "d/m": "a"},
    "upwards": {"d/e/l": "../../a"},
    "to the folder itself": {"d/l": ".."},
    "to nothing that exists": {"l": "nothing/at/all"},
    "to itself": {"l": "l"},
    "in a circle": {"l": "m", "m": "l"},
    "through a link": {"l": "d/up/a", "d/up": ".."},
    "down and up": {"l": "d/../a"},
    "a long chain": {f"l{number}": f"l{number + 1}" for number in range(60)},
}


@pytest.mark.parametrize("kind", HARMLESS_LINKS)
def test_a_link_that_stays_in_the_folder_is_kept(kind, own_cache):
    links = HARMLESS_LINKS[kind]
    archive = member("a") + member("d/a") + b"".join(link(name, target) for name, target in links.items()) + END
    with submission_folder(archive, own_cache) as folder:
        assert {name: os.readlink(folder / name) for name in links} == links


@pytest.fixture
def given(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    (folder / "package/inner").mkdir(parents=True)
    (folder / "main.py").write_text("import package\n")
    (folder / "package/__init__.py").write_bytes(b"")
    (folder / "package/inner/data").write_bytes(os.urandom(50_000))
    (folder / "empty").mkdir()
    (folder / "café \n").write_text("ü")
    (folder / "link").symlink_to("package/inner")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    (folder / "read-only").mkdir()
    (folder / "read-only/file").touch()
    (folder / "read-only").chmod(0o555)
    return folder


def packed(folder: Path, mode: str, **options: int) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode, **options) as tar:  # type: ignore[call-overload]
        tar.add(folder, ".")
    return stream.getvalue()


@pytest.mark.e2e
@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize(("mode", "suffix"), [("w", ".tar"), ("w:gz", ".tar.gz"), ("w:gz", ".tgz")])
def test_an_archive_is_the_same_submission_as_its_folder(given, own_cache, mode, suffix, format, tmp_path):
    archive, path = packed(given, mode, format=format), tmp_path / f"archive{suffix}"
    path.write_bytes(archive)
    (tmp_path / f"link{suffix}").symlink_to(path)

    class OneByteAtATime(io.RawIOBase):
        """A stream that cannot seek, and gives less than it is asked for."""

        def __init__(self) -> None:
            self.stream = io.BytesIO(archive)

        def read(self, size: int = -1) -> bytes:
            return self.stream.read(min(size, 1))

    with path.open("rb") as file:
        sources = [archive, path, str(path), file, io.BytesIO(archive), OneByteAtATime(), tmp_path / f"link{suffix}"]
        for source in sources:
            with submission_folder(check_source(source), own_cache) as folder:
                assert tree_digest(folder) == tree_digest(given)
                assert folder.is_relative_to(own_cache.root / "sessions")
            assert not folder.exists()


def test_a_mapping_is_the_same_submission_as_its_folder(own_cache, tmp_path):
    files = {"main.py": "print('ü')\n", "./package//__init__.py": b"", "package/a/b/data": bytes(range(256))}
    for name, content in files.items():
        (tmp_path / "given" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "given" / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with submission_folder(files, own_cache) as folder:
        assert tree_digest(folder) == tree_digest(tmp_path / "given")
        assert stat.S_IMODE((folder / "main.py").stat().st_mode) == 0o644
        assert (folder / "main.py").stat().st_mtime > 315_532_800, "a zip file of it could not be made"


def test_folders_may_come_after_what_is_in_them(own_cache):
    closed = tarfile.TarInfo("a")
    closed.type, closed.mode = FOLDER, 0o600  # nobody but root may look for what is in it
    archive = member("a/b/c") + member("a/b", FOLDER) + closed.tobuf() + END
    with submission_folder(archive, own_cache) as folder:
        assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o600
        (folder / "a").chmod(0o700)
        assert (folder / "a/b/c").is_file()


def test_no_bit_of_a_mode_gives_rights_of_another_user(own_cache):
    info = tarfile.TarInfo("a")
    info.mode, info.uid = 0o6755, 0
    with submission_folder(info.tobuf() + END, own_cache) as folder:
        assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o755


@pytest.mark.parametrize("name", ["folder", "folder.tar"])
def test_a_folder_is_evaluated_where_it_is(name, own_cache, tmp_path):
    (tmp_path / name).mkdir()
    with submission_folder(check_source(str(tmp_path / name)), own_cache) as folder:
        assert folder == tmp_path / name
    assert folder.is_dir()


@pytest.mark.parametrize(
    ("make", "fact"),
    [
        (lambda _: None, "No such file"),
        (lambda path: path.symlink_to(path.name), "ymlink|symbolic links"),
        (os.mkfifo, "not a regular file"),
    ],
    ids=["missing", "loop", "pipe"],
)
def test_a_path_of_an_archive_that_is_none_is_refused(make, fact, own_cache, tmp_path):
    make(tmp_path / "a.tar")
    with (
        pytest.raises(SubmissionError, match=rf"a\.tar: cannot be read: .*({fact})"),
        submission_folder(tmp_path / "a.tar", own_cache),
    ):
        pytest.fail("unpacked")


def test_a_text_file_is_refused(own_cache):
    with (
        pytest.raises(SubmissionError, match="a file must be open in binary mode, found str"),
        submission_folder(io.StringIO("x"), own_cache),  # type: ignore[arg-type]
    ):
        pytest.fail("unpacked")


class Failing(io.RawIOBase):
    def read(self, size: int = -1) -> bytes:
        raise OSError(5, "Input/output error")


def test_a_file_that_cannot_be_read_is_an_infrastructure_failure(own_cache):
    with pytest.raises(InfrastructureError, match="Input/output error"), submission_folder(Failing(), own_cache):
        pytest.fail("unpacked")


@pytest.mark.parametrize("source", [None, 5, 5.0, ["a"], ("a", "b"), {"a"}, bytearray(b"x"), object(), "a\0", "\ud800"])
def test_anything_else_is_a_wrong_argument(source):
    with pytest.raises(UsageError, match=r"^submission: expected a folder, a tar archive"):
        check_source(source)


class Endless:
    """An archive whose first member has no end; it is cancelled after some reads."""

    def __init__(self, token: CancelToken) -> None:
        self.token, self.reads, self.head = token, 0, member("main.py", size=1 << 33)

    def read(self, size: int, /) -> bytes:
        self.reads += 1
        if self.reads == 20:
            self.token.cancel()
        part, self.head = self.head[:size], self.head[size:]
        return part or bytes(min(size, 100))


def test_unpacking_can_be_cancelled_and_leaves_nothing(own_cache, tmp_path):
    token = CancelToken()
    with (
        cancel_scope(token),
        pytest.raises(EvaluationCancelledError),
        submission_folder(Endless(token), own_cache),
    ):
        pytest.fail("unpacked")
    token.close()
    assert everything_in(tmp_path) <= {"cache", "cache/sessions"}


@pytest.mark.e2e
def test_memory_does_not_grow_with_the_number_of_members():
    """tarfile keeps every member unless it is told not to."""
    import tracemalloc

    from slop_code.execution.trees.archive import read_members

    def peak(count: int) -> int:
        stream = io.BytesIO(b"".join(member(f"{number}", format=tarfile.USTAR_FORMAT) for number in range(count)) + END)
        tracemalloc.start()
        assert sum(1 for _ in read_members(stream.read)) == count
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(10)
    assert peak(3000) < peak(300) + 50_000
