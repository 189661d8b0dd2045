from __future__ import annotations

import os

import pytest

from slop_code.execution.trees import manifest as module
from slop_code.execution.trees.manifest import (
    MANIFEST,
    check_manifest,
    check_sample_manifest,
    write_manifest,
    write_sample_manifest,
)

TIME = (1_000_000_000, 1_000_000_000)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "env/bin").mkdir(parents=True)
    (tmp_path / "env/__pycache__").mkdir()
    (tmp_path / "env/pyvenv.cfg").write_text("home = /usr/bin\n")
    (tmp_path / "env/bin/python").symlink_to("/usr/bin/python3")
    (tmp_path / "env/empty").write_text("")
    (tmp_path / "env/odd\udcff\n").write_text("odd")
    (tmp_path / "env/__pycache__/early.pyc").write_text("early")
    return tmp_path


@pytest.fixture
def entry(folder):
    write_manifest(folder)
    return folder


@pytest.fixture
def sampled(folder):
    write_sample_manifest(folder)
    return folder


def spoil(path, how):
    content = path.read_bytes()
    path.unlink()
    if how == "flipped":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif how == "cut short":
        path.write_bytes(content[:-1])
    elif how == "a folder":
        path.mkdir()
    elif how == "a link":
        path.symlink_to("env/empty")


damaged = pytest.mark.parametrize("how", ["flipped", "cut short", "gone", "a folder", "a link"])
names = pytest.mark.parametrize("name", ["env/pyvenv.cfg", "env/odd\udcff\n", "env/__pycache__/early.pyc", MANIFEST])


def test_an_unchanged_folder_passes(entry):
    check_manifest(entry)
    check_manifest(entry, reread=False)


@names
@damaged
def test_a_damaged_file_is_detected(entry, name, how):
    spoil(entry / name, how)
    with pytest.raises((ValueError, OSError)):
        check_manifest(entry)


@names
@damaged
def test_a_damaged_file_of_a_sample_is_detected(sampled, name, how):
    check_sample_manifest(sampled)
    spoil(sampled / name, how)
    with pytest.raises((ValueError, OSError)):
        check_sample_manifest(sampled)


@pytest.mark.parametrize(
    "change",
    [
        lambda env: (env / "new.py").touch(),
        lambda env: (env / "new").mkdir(),
        lambda env: (env / "new.pyc").touch(),
        lambda env: (env / "bin/__pycache__").symlink_to("/tmp"),
        lambda env: (env / "bin/python").unlink(),
        lambda env: ((env / "bin/python").unlink(), (env / "bin/python").symlink_to("/usr/bin/python4")),
        lambda env: (env / "empty").chmod(0o777),
        lambda env: (env / "bin").chmod(0o711),
        lambda env: ((env / "empty").unlink(), os.mkfifo(env / "empty")),
    ],
    ids=["file", "folder", "bytecode", "pycache", "link gone", "link", "mode", "folder's mode", "pipe"],
)
@pytest.mark.parametrize("reread", [True, False])
def test_any_other_change_is_detected(entry, change, reread):
    change(entry / "env")
    with pytest.raises((ValueError, OSError)):
        check_manifest(entry, reread=reread)


def test_bytecode_that_was_added_later_is_removed(entry):
    """It may say that it was compiled from a test, and say something else."""
    late = [entry / "env/__pycache__/late.pyc", entry / "env/bin/__pycache__/late.pyc"]
    for path in late:
        path.parent.mkdir(exist_ok=True)
        path.write_text("late")
    half = entry / "env/__pycache__/late.pyc.4711"
    half.touch()
    check_manifest(entry)
    assert [path.exists() for path in [*late, half]] == [False, False, True]


def test_bytecode_that_another_evaluator_removes_meanwhile_is_no_damage(entry, monkeypatch):
    late, read_facts = entry / "env/__pycache__/late.pyc", module._facts
    late.write_text("late")

    def facts(listed):
        if listed.name == late.name:
            late.unlink()
        return read_facts(listed)

    monkeypatch.setattr(module, "_facts", facts)
    check_manifest(entry)
    assert not late.exists()


def test_every_file_counts_however_many_there_are(tmp_path):
    for number in range(module.MAX_DIGESTS + 20):
        (tmp_path / f"{number}.txt").write_text("")
    (tmp_path / "test_checkpoint_1.py").write_text("assert 1 == 2")
    write_manifest(tmp_path)
    (tmp_path / "test_checkpoint_1.py").write_text("assert 1 == 1")
    with pytest.raises(ValueError, match=r"test_checkpoint_1\.py is damaged"):
        check_manifest(tmp_path)


@pytest.mark.parametrize(
    ("content", "time", "sound"),
    [("1234", TIME, True), ("1234", (2, 2), True), ("4321", TIME, True), ("4321", (2, 2), False), ("1", TIME, False)],
)
def test_without_reread_a_file_with_its_size_and_time_counts_as_unchanged(tmp_path, content, time, sound):
    """One with another time is read: a cache that was copied without its times is as good."""
    folder, kept = tmp_path / "folder", tmp_path / "kept"
    folder.mkdir()
    (folder / "file").write_text("1234")
    os.utime(folder / "file", TIME)
    write_manifest(folder, kept)
    (folder / "file").write_text(content)
    os.utime(folder / "file", time)
    if sound:
        check_manifest(folder, kept, reread=False)
    else:
        with pytest.raises(ValueError, match="file is damaged"):
            check_manifest(folder, kept, reread=False)


def test_files_added_to_a_sample_are_ignored(sampled):
    (sampled / "env/late").write_text("late")
    check_sample_manifest(sampled)


def test_large_files_of_a_sample_are_compared_by_size(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_DIGEST_BYTES", 4)
    (tmp_path / "small").write_text("1234")
    (tmp_path / "large").write_text("12345")
    write_sample_manifest(tmp_path)
    (tmp_path / "large").write_text("54321")
    check_sample_manifest(tmp_path)
    (tmp_path / "large").write_text("1234")
    with pytest.raises(ValueError, match="large is damaged"):
        check_sample_manifest(tmp_path)


def test_a_sample_has_a_maximum_number_of_files(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_FILES", 3)
    for number in range(9):
        (tmp_path / str(number)).write_text(str(number))
    os.mkfifo(tmp_path / "pipe")
    write_sample_manifest(tmp_path)
    check_sample_manifest(tmp_path)
