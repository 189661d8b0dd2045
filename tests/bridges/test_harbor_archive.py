"""Workspaces that a container engine packed: everything in the archive is the agent's, and hostile."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from typing import TYPE_CHECKING

import pytest

from slop_code.bridges import harbor_archive
from slop_code.bridges.harbor_archive import unpack_workspace
from slop_code.execution.submission import MAX_BYTES, MAX_DEPTH, read_tree
from slop_code.execution.trees.archive import read_members
from slop_code.execution.trees.tree_writer import ArchiveError

if TYPE_CHECKING:
    from pathlib import Path


def member(name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"", **fields: object) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.PAX_FORMAT) + content + bytes(-len(content) % tarfile.BLOCKSIZE)


ROOT = member("workspace", tarfile.DIRTYPE, mode=0o755)
END = bytes(2 * tarfile.BLOCKSIZE)


def unpack(folder: Path, *parts: bytes) -> bool:
    return unpack_workspace(read_members(io.BytesIO(b"".join(parts)).read), folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "submission"


def test_files_folders_links_and_pipes_are_restored_as_they_are(folder):
    unpack(
        folder,
        ROOT,
        member("workspace/lib", tarfile.DIRTYPE, mode=0o500),
        member("workspace/lib/a.py", content=b"x = 1\n", mode=0o4755),
        member("workspace/python", tarfile.SYMTYPE, linkname="/usr/bin/python3"),
        member("workspace/same", tarfile.LNKTYPE, linkname="workspace/lib/a.py"),
        member("workspace/pipe", tarfile.FIFOTYPE, mode=0o600),
        END,
    )
    assert (folder / "lib/a.py").read_text() == (folder / "same").read_text() == "x = 1\n"
    assert stat.S_IMODE((folder / "lib/a.py").stat().st_mode) == 0o755, "without the bit for root"
    assert stat.S_IMODE((folder / "lib").stat().st_mode) == 0o500
    assert os.readlink(folder / "python") == "/usr/bin/python3"
    assert stat.S_ISFIFO((folder / "pipe").lstat().st_mode)


def test_nothing_is_written_through_a_link_that_took_the_place_of_a_folder(folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    link = member("workspace/data", tarfile.SYMTYPE, linkname=str(outside))
    for bait in (member("workspace/data/x", content=b"x"), member("workspace/data/x", tarfile.DIRTYPE)):
        with pytest.raises(ArchiveError):
            unpack(folder, ROOT, link, bait, END)
        assert list(outside.iterdir()) == []
        (folder / "data").unlink()
        folder.rmdir()


@pytest.mark.parametrize("name", ["workspace/../../x", "workspace/a/../../../x", "/workspace/../x"])
def test_a_name_that_leads_outside_is_refused(folder, tmp_path, name):
    with pytest.raises(ArchiveError):
        unpack(folder, ROOT, member(name, content=b"x"), END)
    assert [path.name for path in tmp_path.rglob("*")] == ["submission"]


def test_a_hard_link_to_a_file_of_the_host_is_none(folder, tmp_path):
    (tmp_path / "secret").write_text("secret")
    unpack(folder, ROOT, member("workspace/x", tarfile.LNKTYPE, linkname="workspace/secret"), END)
    with pytest.raises(ArchiveError):
        unpack(tmp_path / "other", ROOT, member("workspace/x", tarfile.LNKTYPE, linkname="workspace/../secret"), END)
    assert list(folder.iterdir()) == list((tmp_path / "other").iterdir()) == []


@pytest.mark.parametrize(
    "source",
    ["workspace/.scbench/report.json", "workspace/.scbench", "workspace", "", "workspace/disk", "workspace/lib"],
)
def test_a_hard_link_to_what_was_left_out_or_to_a_folder_is_skipped_alone(folder, source):
    before = [
        member("workspace/.scbench", tarfile.DIRTYPE),
        member("workspace/.scbench/report.json", content=b"{}"),
        member("workspace/disk", tarfile.BLKTYPE, devmajor=8, devminor=0),
        member("workspace/lib", tarfile.DIRTYPE, mode=0o755),
    ]
    link, after = member("workspace/link", tarfile.LNKTYPE, linkname=source), member("workspace/main.py", content=b"x")
    assert unpack(folder, ROOT, *before, link, after, END)
    assert sorted(os.listdir(folder)) == ["lib", "main.py"]


def test_devices_and_names_that_the_evaluation_uses_are_left_out(folder):
    device = member("workspace/disk", tarfile.BLKTYPE, devmajor=8, devminor=0)
    unpack(folder, ROOT, device, member("workspace/.scbench/report.json", content=b"{}"), END)
    assert list(folder.iterdir()) == []


def test_a_file_beyond_the_limit_is_a_hole_and_the_tree_is_over_it(folder):
    """The content is not even read: there is none in this archive."""
    unpack(folder, ROOT, member("workspace/main.py", content=b"x"), member("workspace/large", size=MAX_BYTES))
    assert (folder / "large").stat().st_blocks == 0
    assert "16 GiB" in str(read_tree(folder).over_limit)


@pytest.mark.e2e
def test_zeros_take_no_room(folder):
    """A sparse file of the agent comes with all its zeros."""
    unpack(folder, ROOT, member("workspace/zeros", content=bytes(64 << 20)), END)
    assert (folder / "zeros").stat().st_size == 64 << 20
    assert (folder / "zeros").stat().st_blocks < 1000


def test_folders_beyond_the_limit_are_over_it(folder):
    name = "/".join(["workspace", *["d"] * (MAX_DEPTH + 50), "x"])
    unpack(folder, ROOT, member(name, content=b"x"), END)
    assert "nested more than 400 deep" in str(read_tree(folder).over_limit)


def test_more_entries_than_a_submission_may_have_end_just_beyond_the_limit(folder, monkeypatch):
    monkeypatch.setattr(harbor_archive, "MAX_ENTRIES", 3)
    unpack(folder, ROOT, *[member(f"workspace/{number}", content=b"x") for number in range(9)], END)
    assert len(list(folder.iterdir())) == 4


@pytest.mark.parametrize("name", [".scbench/x", ".evaluation_tests/assets/x"])
def test_a_large_file_that_is_left_out_is_refused_before_it_is_read(folder, name):
    """Its content is not in this archive; reading on would be an EOFError."""
    with pytest.raises(ArchiveError, match="beyond the limits"):
        unpack(folder, ROOT, member(f"workspace/{name}", size=MAX_BYTES + 1))


def test_more_entries_that_are_left_out_than_a_submission_may_have_are_refused(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(harbor_archive, "MAX_ENTRIES", 3)
    parts = [member(f"workspace/.scbench/{number}") for number in range(4)]
    with pytest.raises(ArchiveError, match="beyond the limits"):
        unpack(folder, ROOT, *parts, END)
    kept = [member(f"workspace/{number}") for number in range(3)]
    assert unpack(tmp_path / "other", ROOT, *kept, *parts[:3], END), "each has the limits for itself"
    assert len(os.listdir(tmp_path / "other")) == 3


def test_a_workspace_that_is_a_link_or_a_file_is_none(folder, tmp_path):
    assert not unpack(folder, member("workspace", tarfile.SYMTYPE, linkname="/"), END)
    assert not unpack(tmp_path / "other", member("workspace", content=b"x"), END)


def test_an_archive_that_ends_early_is_no_workspace(folder):
    with pytest.raises(EOFError):
        unpack(folder, ROOT, member("workspace/main.py", content=b"x"))
