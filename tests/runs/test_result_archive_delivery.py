"""Delivery of results: a local one is moved into place, once, and the rest is unpacked."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from pathlib import Path

import pytest

from slop_code.errors import InfrastructureError
from slop_code.evaluation import CorrectnessResults
from slop_code.evaluation.result_files.replace_result import finish_replacement
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.jobs.job_records import JobResult
from slop_code.runs.result_archive import deliver, pack_result, unpack_result
from slop_code.runs.run_layout import RESULT_FILE


@pytest.fixture
def target(world):
    world.problem(count=1)
    world.run(snapshots={"words": ["a"]})
    return world.discover()[0].submissions[0]


@pytest.fixture
def result(world, target):
    """As an executor of this machine leaves it, in a folder with a report."""
    folder = world.folder / "temporary"
    results = world.results(target)
    results.save(folder / RESULT_FILE)
    (folder / ".scbench").mkdir()
    (folder / ".scbench/report.json").write_text("{}")
    return JobResult(CheckpointFacts.of(results), pack_result(folder), folder=folder)


def inodes(folder):
    return {name: (folder / name).stat().st_ino for name in (RESULT_FILE, ".scbench/report.json")}


def test_a_local_result_is_moved_and_not_written_again(target, result):
    written = inodes(result.folder)
    assert deliver(target, result, move=True) == result.facts
    assert inodes(target.output) == written
    assert list(result.folder.iterdir()) == []


def test_a_result_that_others_need_as_well_stays_in_its_folder(target, result):
    written = inodes(result.folder)
    assert deliver(target, result, move=False) == result.facts
    assert inodes(result.folder) == written
    assert not inodes(target.output).items() & written.items()


@pytest.fixture
def _other_file_system(result, monkeypatch):
    """The folder of the result is on another one than the target."""
    own_rename = os.rename

    def rename(source, destination, **options):
        if result.folder in Path(source).parents:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(source), None, str(destination))
        own_rename(source, destination, **options)

    monkeypatch.setattr(os, "rename", rename)


@pytest.mark.usefixtures("_other_file_system")
def test_a_folder_on_another_file_system_is_copied_without_links(target, result):
    (result.folder / ".scbench/2").mkdir()
    (result.folder / ".scbench/2/pytest.log").write_text("log")
    (result.folder / ".scbench/2/link").symlink_to("/etc/passwd")
    (result.folder / ".scbench/folder").symlink_to("/etc")
    os.mkfifo(result.folder / ".scbench/pipe")
    assert deliver(target, result, move=True) == result.facts
    assert CorrectnessResults.load(target.output / RESULT_FILE).checkpoint_name == "checkpoint_1"
    reports = target.output / ".scbench"
    files = {path.relative_to(reports).as_posix() for path in reports.rglob("*") if not path.is_dir()}
    assert files == {"report.json", "2/pytest.log"}


@pytest.mark.usefixtures("_other_file_system")
def test_a_disk_without_room_for_a_copy_ends_the_run(target, result, monkeypatch):
    deliver(target, result, move=False)
    before = inodes(target.output)

    def copy(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", copy)
    message = f"{target.output / RESULT_FILE}: No space left on device; every result written before is whole: make room"
    with pytest.raises(InfrastructureError, match=re.escape(message)):
        deliver(target, result, move=True)
    assert inodes(target.output) == before


def test_an_earlier_result_is_replaced_as_a_whole(target, result):
    (target.output / ".scbench").mkdir()
    (target.output / ".scbench/pytest.log").write_text("old")
    (target.output / RESULT_FILE).write_text("old")
    deliver(target, result, move=True)
    assert [path.name for path in (target.output / ".scbench").iterdir()] == ["report.json"]
    assert CorrectnessResults.load(target.output / RESULT_FILE)


@pytest.mark.parametrize("keep", [True, False])
def test_a_verdict_may_be_kept_from_an_infrastructure_failure(world, target, result, keep):
    path = world.finish(target, "+-")
    failure = world.results(target, infrastructure_failure_reason="killed")
    facts = CheckpointFacts.of(failure)
    assert deliver(target, JobResult(facts, world.archive(failure)), move=False, keep_verdict=keep) == facts
    assert CorrectnessResults.load(path).infrastructure_failure is not keep
    attempt = path.parent / ".scbench/attempt-1" / RESULT_FILE
    assert attempt.exists() is keep
    assert not keep or CorrectnessResults.load(attempt) == failure
    deliver(target, result, move=False, keep_verdict=keep)
    assert not CorrectnessResults.load(path).infrastructure_failure
    assert not attempt.exists()


def test_a_move_that_breaks_off_leaves_the_earlier_result(target, result, monkeypatch):
    deliver(target, result, move=False)
    before = inodes(target.output)

    def rename(source, destination):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        deliver(target, result, move=True)
    assert inodes(target.output) == before


@pytest.mark.parametrize("error", [OSError(errno.EIO, os.strerror(errno.EIO)), KeyboardInterrupt()])
@pytest.mark.parametrize("broken", [".scbench", RESULT_FILE])
def test_a_move_that_breaks_off_after_the_earlier_result_is_gone_can_be_completed(
    target, result, error, broken, monkeypatch
):
    deliver(target, result, move=False)
    written, own_rename = inodes(result.folder), os.rename

    def rename(source, destination):
        if Path(destination) == target.output / broken:
            raise error
        own_rename(source, destination)

    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
        patched.setattr(os, "rename", rename)
        assert deliver(target, result, move=True).state == "not_evaluated"
    assert not (target.output / RESULT_FILE).exists()
    finish_replacement(target.output)
    assert inodes(target.output) == written
    assert sorted(path.name for path in target.output.iterdir()) == [".scbench", RESULT_FILE, "snapshot"]


def test_a_result_without_evidence_leaves_none_of_an_earlier_one(world, target, result):
    deliver(target, result, move=False)
    (target.output / ".scbench/report.json").rename(target.output / ".scbench/pytest.log")
    unpack_result(world.archive(world.results(target)), target.output)
    assert sorted(path.name for path in target.output.iterdir()) == [RESULT_FILE, "snapshot"]


def test_an_output_that_cannot_be_written_is_named(target, result, monkeypatch):
    def rename(source, destination):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(source), None, str(destination))

    monkeypatch.setattr(os, "rename", rename)
    facts = deliver(target, result, move=True)
    assert facts.state == "not_evaluated"
    assert facts.reason.startswith(f"{target.output / RESULT_FILE}: Permission denied; make it writable")


@pytest.mark.parametrize("move", [True, False])
def test_an_earlier_result_stays_where_the_new_one_has_no_room(target, result, move, monkeypatch):
    deliver(target, result, move=False)
    before = inodes(target.output)

    def write(*_, **_options):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(target.output))

    monkeypatch.setattr("slop_code.runs.result_archive.write_atomic", write)
    monkeypatch.setattr("slop_code.runs.result_archive.move_result", write)
    assert deliver(target, result, move=move).state == "not_evaluated"
    assert inodes(target.output) == before
    assert sorted(path.name for path in target.output.iterdir()) == [".scbench", RESULT_FILE, "snapshot"]
