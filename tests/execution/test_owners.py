"""Owners of containers, volumes and images."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys

import pytest

from slop_code.execution.cache import Cache
from slop_code.execution.docker.engine import LabelledObject, _labels
from slop_code.execution.docker.owners import (
    ENTRY,
    OWNER,
    is_abandoned,
    is_owner_alive,
    machine_id,
    owner_label,
    remove_abandoned_locks,
    remove_abandoned_objects,
)


@pytest.fixture
def oddly_named_cache(tmp_path):
    root = tmp_path / "a cache, with 100% odd=name"
    root.mkdir()
    return Cache(root)


@pytest.mark.e2e
def test_an_owner_lives_as_long_as_its_process(oddly_named_cache):
    code = (
        "import sys, pathlib; from slop_code.execution.docker.owners import owner_label; "
        "from slop_code.execution.cache import Cache; "
        "print(owner_label(Cache(pathlib.Path(sys.argv[1]))), flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", code, oddly_named_cache.root]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        label = process.stdout.readline().strip()
        assert is_owner_alive(label)
        remove_abandoned_locks(oddly_named_cache)
        assert is_owner_alive(label)
        assert not is_abandoned(LabelledObject("x", {OWNER: label}))
        process.kill()
        process.wait()
        assert not is_owner_alive(label)
    assert len(list((oddly_named_cache.root / "owners").iterdir())) == 1
    remove_abandoned_locks(oddly_named_cache)
    assert list((oddly_named_cache.root / "owners").iterdir()) == []
    assert not is_owner_alive(label)


def test_a_new_owner_removes_abandoned_locks(oddly_named_cache):
    (oddly_named_cache.root / "owners").mkdir()
    (oddly_named_cache.root / "owners" / "123-dead").touch()
    label = owner_label(oddly_named_cache)
    assert is_owner_alive(label)
    assert [path.name.partition("-")[0] for path in (oddly_named_cache.root / "owners").iterdir()] == [str(os.getpid())]
    assert "," not in label  # where docker would see the next label
    assert " " not in label


def test_an_owner_of_another_machine_counts_as_alive(tmp_path):
    assert is_owner_alive(f"another:{tmp_path}/gone")
    assert is_owner_alive("")
    assert not is_owner_alive(f"{machine_id()}:{tmp_path}/gone")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every lock")
def test_an_owner_whose_lock_cannot_be_tested_counts_as_alive(tmp_path):
    (tmp_path / "owner").touch(mode=0)
    assert is_owner_alive(f"{machine_id()}:{tmp_path}/owner")


def entry_with(tmp_path, names):
    folder = tmp_path / "an entry"
    folder.mkdir()
    if names is not None:
        (folder / "names.json").write_text(names)
    return str(folder).replace(" ", "%20")


@pytest.mark.parametrize(
    ("names", "abandoned"),
    [
        ('{"a": "mine"}', False),
        ('{"a": "other", "b": "mine"}', False),
        ('{"a": "other"}', True),
        ('{"mine": "not"}', True),
        ("", True),
        (None, True),
    ],
)
def test_an_object_of_a_cache_entry_is_never_abandoned(tmp_path, names, abandoned):
    dead = f"{machine_id()}:{tmp_path}/gone"
    assert is_abandoned(LabelledObject("mine", {OWNER: dead, ENTRY: entry_with(tmp_path, names)})) is abandoned


def test_an_object_without_a_cache_entry_is_abandoned_when_its_owner_is_gone(tmp_path):
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not is_abandoned(LabelledObject("x", {OWNER: f"{machine_id()}:{tmp_path}/lock"}))
        assert not is_abandoned(
            LabelledObject("x", {OWNER: f"{machine_id()}:{tmp_path}/lock", ENTRY: "/no/such/entry"})
        )
    assert is_abandoned(LabelledObject("x", {OWNER: f"{machine_id()}:{tmp_path}/lock"}))
    assert is_abandoned(LabelledObject("x", {OWNER: f"{machine_id()}:{tmp_path}/lock", ENTRY: "/no/such/entry"}))
    assert not is_abandoned(LabelledObject("x", {}))


@pytest.mark.e2e
def test_only_abandoned_objects_are_removed(engine, calls, tmp_path):
    dead, other = {OWNER: f"{machine_id()}:{tmp_path}/gone"}, {OWNER: "another:/lock"}
    removed = remove_abandoned_objects(
        engine("exit 1"),
        [LabelledObject("c-dead", dead), LabelledObject("c-other", other)],
        [
            LabelledObject("v-dead", dead),
            LabelledObject("v-other", other),
            LabelledObject("v-kept", {**dead, ENTRY: entry_with(tmp_path, '{"a": "v-kept"}')}),
        ],
    )
    assert removed == ["c-dead", "v-dead"]
    assert [re.sub(r" --\w+", "", call) for call in calls()] == ["rm c-dead", "volume rm v-dead"]


def test_the_engine_is_not_called_when_nothing_is_abandoned(engine, calls):
    assert remove_abandoned_objects(engine("exit 1"), [], []) == []
    assert calls() == []


def test_a_label_is_read_back_as_it_was_written(oddly_named_cache):
    """The path of a cache can have any character in it; docker prints labels with commas between them."""
    label = owner_label(oddly_named_cache)
    assert _labels(f"{OWNER}={label},other=1") == {OWNER: label, "other": "1"}
    assert is_owner_alive(label)
