"""Result archives: round trips, bounds, and damaged archives."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile

import pytest

from slop_code.errors import ResultError
from slop_code.evaluation import CorrectnessResults
from slop_code.evaluation.result_files.evidence_files import EVIDENCE_FILES
from slop_code.evaluation.result_files.replace_result import finish_replacement
from slop_code.runs import result_archive as module
from slop_code.runs.result_archive import add_attempts, pack_result, read_archived_results, unpack_result

FILES = {"evaluation.json": "{}", ".scbench/pytest.log": "log", ".scbench/first/stream.jsonl": "stream"}
RESULTS = {
    "problem_name": "p",
    "checkpoint_name": "c",
    "duration": 1.5,
    "tests": [],
    "pytest_exit_code": 0,
    "isolation": {},
    "phases": {},
    "provenance": {
        "digests": {"config": "1", "environment": "2"},
        "test_dependencies": {},
        "python": "3",
        "platform": "x",
        "slop_code": "1",
        "command": [],
        "pytest_args": [],
    },
    "evidence": "stream",
}


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def read(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def make(members):
    """A archive of (name or member, content) pairs, whatever they are."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        for member, content in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def name_of(member):
    """The same in every process, for which the repr of a record is not."""
    return repr(member)[:60] if isinstance(member, str) else f"{member.name} of type {member.type.decode()}"


def of_type(name, kind):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


def test_a_packed_result_unpacks_to_the_same_files(tmp_path):
    unpack_result(pack_result(write(tmp_path / "a", FILES)), tmp_path / "deep" / "b")
    assert read(tmp_path / "deep" / "b") == FILES


def test_earlier_attempts_go_into_folders_of_their_own(tmp_path):
    attempts = [write(tmp_path / "1", FILES), None, write(tmp_path / "3", {"evaluation.json": "[]"})]
    archives = [None if folder is None else pack_result(folder) for folder in attempts]
    unpack_result(add_attempts(pack_result(write(tmp_path / "a", FILES)), archives), tmp_path / "b")
    assert read(tmp_path / "b") == {
        **FILES,
        ".scbench/attempt-1/evaluation.json": "{}",
        ".scbench/attempt-1/pytest.log": "log",
        ".scbench/attempt-1/first-stream.jsonl": "stream",
        ".scbench/attempt-3/evaluation.json": "[]",
    }


@pytest.mark.parametrize("name", EVIDENCE_FILES)
def test_every_raw_report_goes_in(tmp_path, name):
    files = {"evaluation.json": "{}", f".scbench/{name}": "one", f".scbench/2/{name}": "other"}
    unpack_result(pack_result(write(tmp_path / "a", files)), tmp_path / "b")
    assert read(tmp_path / "b") == files


def test_equal_files_make_equal_archives(tmp_path):
    first = pack_result(write(tmp_path / "a", FILES))
    write(tmp_path / "b", dict(reversed(FILES.items())))
    for path in (tmp_path / "b").rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    assert pack_result(tmp_path / "b") == first
    assert first[4:8] == bytes(4), "nor does the time of packing matter"
    assert pack_result(write(tmp_path / "b", {".scbench/pytest.log": "other"})) != first


def test_only_result_files_are_packed(tmp_path):
    folder, outside = write(tmp_path / "a", FILES), write(tmp_path / "outside", {"secret": "x"})
    write(folder, {"snapshot/main.py": "x", ".scbench/a/b/deep": "x", ".scbench/.hidden": "x", ".scbench/a b": "x"})
    (folder / ".scbench" / "link").symlink_to(outside / "secret")
    (folder / ".scbench" / "linked").symlink_to(outside)
    os.mkfifo(folder / ".scbench" / "pipe")
    unpack_result(pack_result(folder), tmp_path / "b")
    assert read(tmp_path / "b") == FILES


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_in_the_place_of_the_reports_is_not_followed(tmp_path, kind):
    outside = write(tmp_path / "outside", {"secret": "x"})
    own = {"evaluation.json": json.dumps(RESULTS)}
    folder = write(tmp_path / "a", own)
    (folder / ".scbench").symlink_to(outside if kind == "folder" else outside / "secret")
    assert pack_result(folder) == pack_result(write(tmp_path / "b", own))
    unpack_result(pack_result(write(tmp_path / "c", FILES)), folder)
    assert read(folder) == FILES
    assert read(outside) == {"secret": "x"}


@pytest.mark.parametrize("how", ["missing", "link"])
def test_without_a_result_there_is_no_archive(tmp_path, how):
    write(tmp_path, {".scbench/pytest.log": "x", "other": "{}"})
    if how == "link":
        (tmp_path / "evaluation.json").symlink_to("other")
    with pytest.raises(OSError, match=r"evaluation\.json"):
        pack_result(tmp_path)


def test_files_that_are_too_large_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_RAW_FILE", 10)
    monkeypatch.setattr(module, "SIZE_LIMIT", 20)
    folder = write(tmp_path / "a", {**FILES, ".scbench/pytest.log": "x" * 11, "evaluation.json": "x" * 20})
    unpack_result(pack_result(folder), tmp_path / "b")
    assert sorted(read(tmp_path / "b")) == [".scbench/first/stream.jsonl", "evaluation.json"]
    write(folder, {"evaluation.json": "x" * 21})
    with pytest.raises(ResultError, match="larger than 20 bytes"):
        pack_result(folder)


def test_all_that_is_packed_can_be_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_UNPACKED", tarfile.RECORDSIZE + 4500)
    folder = write(tmp_path / "a", {f".scbench/{number}": "x" * 700 for number in range(9)} | {"evaluation.json": "{}"})
    unpack_result(pack_result(folder), tmp_path / "b")
    assert sorted(read(tmp_path / "b")) == [".scbench/0", ".scbench/1", "evaluation.json"]


def test_an_earlier_result_is_removed(tmp_path):
    old = dict.fromkeys(("evaluation.json", ".scbench/exit.json", ".scbench/2/exit.json"), "old")
    target = write(tmp_path / "b", {**old, ".evaluation.json.0123456789abcdef": "half"})
    others = dict.fromkeys(("notes.txt", "snapshot/main.py", ".scbench/2/notes", ".scbench/x/y/z"), "mine")
    write(target, others)
    unpack_result(pack_result(write(tmp_path / "a", FILES)), target)
    assert read(target) == {**FILES, **others}


@pytest.mark.parametrize(
    "members",
    [
        [],
        [(".scbench/pytest.log", b"x")],
        [("evaluation.json", b"{}"), ("evaluation.json", b"{}")],
        *[
            [("evaluation.json", b"{}"), (name, b"x")]
            for name in (
                "other",
                "/etc/passwd",
                "../evaluation.json",
                ".scbench",
                ".scbench/../x",
                ".scbench/a/../../../x",
                ".scbench/a/b/c",
                ".scbench//x",
                ".scbench/.hidden",
                ".scbench/a\nb",
                "snapshot/main.py",
                ".scbench/" + "x" * 101,
            )
        ],
        *[
            [("evaluation.json", b"{}"), (of_type(".scbench/x", kind), b"")]
            for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)
        ],
        [("evaluation.json", b"{}"), (".scbench/a", b"x"), (".scbench/a/b", b"x")],
        [("evaluation.json", b"{}"), *[(f".scbench/{number}", b"") for number in range(1001)]],
    ],
    ids=lambda members: name_of(members[-1][0]) if members else "empty",
)
def test_a_damaged_archive_is_rejected_before_anything_changes(tmp_path, members):
    target = write(tmp_path / "b", {"evaluation.json": "old", ".scbench/ctrf.json": "old"})
    with pytest.raises(ResultError, match="damaged result archive"):
        unpack_result(make(members), target)
    assert read(target) == {"evaluation.json": "old", ".scbench/ctrf.json": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_decompression_bomb_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_UNPACKED", 1 << 20)
    with pytest.raises(ResultError, match="larger than 1048576 bytes"):
        unpack_result(make([("evaluation.json", b"\0" * (2 << 20))]), tmp_path)


@pytest.mark.e2e
def test_every_cut_and_every_change_is_noticed(tmp_path):
    whole = pack_result(write(tmp_path / "a", FILES))
    for end in range(0, len(whole), 7):
        with pytest.raises(ResultError):
            unpack_result(whole[:end], tmp_path / "b")
    with pytest.raises(ResultError):
        unpack_result(whole + b"x", tmp_path / "b")
    assert not (tmp_path / "b").exists()
    noticed = 0
    for index in range(10, len(whole)):
        try:
            unpack_result(whole[:index] + bytes([whole[index] ^ 1]) + whole[index + 1 :], tmp_path / "b")
        except ResultError:
            noticed += 1
        else:  # among zeros there is more than one way to say the same
            assert read(tmp_path / "b") == FILES
    assert noticed > len(whole) * 0.8


def test_results_are_read_from_an_archive(tmp_path):
    results = CorrectnessResults.model_validate(RESULTS)
    tmp_path.mkdir(exist_ok=True)
    results.save(tmp_path / "evaluation.json")
    assert read_archived_results(pack_result(tmp_path)) == results


@pytest.mark.parametrize("text", ["", "{}", "[]", "not json", json.dumps(RESULTS)])
def test_an_archive_without_valid_results_is_rejected(text):
    with pytest.raises(ResultError, match=r"evaluation\.json"):
        read_archived_results(make([("evaluation.json", text.encode())]))


KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from slop_code.runs.result_archive import unpack_result

archive, targets, left = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2]), [1000]

def count(event, arguments):
    # Everything that changes a folder: this many times, and then a kill.
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if writes or event in ("os.remove", "os.rename", "os.mkdir", "os.rmdir"):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
status, step = 1, 0
while status and step < 50:
    shutil.copytree(targets / "old", targets / str(step))
    process = os.fork()
    if process == 0:
        left[0] = step
        unpack_result(archive, targets / str(step))
        os._exit(0)
    _, status = os.waitpid(process, 0)
    left[0], step = 1000, step + 1
print(step)
"""


@pytest.mark.e2e
def test_a_kill_at_any_moment_leaves_the_old_or_the_new_result(tmp_path):
    others = {".scbench/notes": "mine", ".scbench/first/notes": "mine"}
    old = {"evaluation.json": "old", ".scbench/pytest.log": "old", ".scbench/exit.json": "old", **others}
    write(tmp_path / "targets" / "old", old)
    (tmp_path / "archive").write_bytes(pack_result(write(tmp_path / "a", FILES)))
    argv = [sys.executable, "-c", KILLED, tmp_path / "archive", tmp_path / "targets"]
    steps = int(subprocess.run(argv, capture_output=True, timeout=600, check=True).stdout)
    targets = [tmp_path / "targets" / str(step) for step in range(steps)]
    seen = [{name: text for name, text in read(target).items() if ".new/" not in name} for target in targets]
    new = {**FILES, **others}
    assert (seen[0], seen[-1]) == (old, new)
    assert all(found in (old, new) for found in seen if "evaluation.json" in found)
    assert sum("evaluation.json" not in found for found in seen) >= 3
    for target in targets:
        finish_replacement(target)
    finished = [read(target) for target in targets]
    assert all(found in (old, new) for found in finished)
    assert finished == sorted(finished, key=lambda found: found == new)
    for target in targets:
        unpack_result((tmp_path / "archive").read_bytes(), target)
        assert read(target) == new
