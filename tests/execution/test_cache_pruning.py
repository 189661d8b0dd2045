"""Making room: what is removed by whose death, and what a living evaluator still has."""

from __future__ import annotations

import fcntl
import json
import re

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution.cache import Cache
from slop_code.execution.cache_pruning import KINDS, FolderSize, folder_size, prune_cache
from slop_code.execution.docker.owners import ENTRY, OWNER, machine_id


def test_the_rest_of_a_killed_prune_is_removed_by_the_next(empty_cache):
    for name in (".tmpabc/uv", "uv"):
        (empty_cache.root / name / "archive-v0").mkdir(parents=True)
    list(prune_cache(empty_cache, "/no/engine", everything=True))
    assert {path.name for path in empty_cache.root.iterdir() if path.is_dir()} <= {"sessions", "owners"}


@pytest.fixture
def engine(tmp_path):
    """A command that lists these objects, whoever owns them, and records what it is to remove."""

    def make(containers=(), volumes=(), images=None):
        def lines(items, key):
            for name, labels in items:
                yield json.dumps({key: name, "Labels": ",".join("=".join(pair) for pair in labels.items())})

        (tmp_path / "ps").write_text("\n".join(lines(containers, "Names")))
        (tmp_path / "volume").write_text("\n".join(lines(volumes, "Name")))
        (tmp_path / "images").write_text("\n".join(images or {}))
        for image, labels in (images or {}).items():
            (tmp_path / f"labels-{image}").write_text(json.dumps(labels))
        path = tmp_path / "docker"
        path.write_text(
            f"""#!/bin/sh
            cd {tmp_path}
            case "$1 $2" in
                "ps "*|"volume ls"|"images "*) cat $1;;
                "image inspect") for last; do :; done; cat labels-$last;;
                *) echo "$@" >> removed;;
            esac"""
        )
        path.chmod(0o755)
        return str(path)

    return make


def removed(tmp_path):
    return sorted(re.sub(r" --\w+", "", line) for line in (tmp_path / "removed").read_text().splitlines())


@pytest.fixture
def dead(empty_cache):
    return {OWNER: f"{machine_id()}:{empty_cache.root}/owners/1-dead"}


def entry(cache, kind, kept):
    folder = cache.root / kind / "key"
    folder.mkdir(parents=True)
    (folder / "names.json").write_text(json.dumps(dict(enumerate(kept.split()))))
    return {ENTRY: str(folder)}


@pytest.mark.e2e
@pytest.mark.parametrize("everything", [False, True])
def test_cache_entries_are_removed_only_with_everything(empty_cache, engine, everything):
    for kind in KINDS:
        entry(empty_cache, kind, "")
    (empty_cache.root / "other").mkdir()
    lines = [str(action) for action in prune_cache(empty_cache, engine(), everything=everything)]
    left = {path.name for path in empty_cache.root.iterdir() if not path.name.startswith(".")}
    assert left == {"other"} | (set() if everything else set(KINDS))
    assert (f"{empty_cache.root / 'tools'}: removed" in lines) is everything


@pytest.mark.e2e
def test_pruning_everything_fails_while_evaluations_run(empty_cache, engine):
    entry(empty_cache, "tools", "")
    killed = empty_cache.root / "sessions" / "killed"
    killed.mkdir(parents=True)
    (killed / "lock").touch()
    with empty_cache.shared_lock():
        with pytest.raises(InfrastructureError, match="evaluations are running"):
            list(prune_cache(empty_cache, engine(), everything=True))
        assert (empty_cache.root / "tools" / "key").is_dir()
        list(prune_cache(empty_cache, engine(), everything=False))
        assert not killed.exists()
    list(prune_cache(empty_cache, engine(), everything=True))
    assert not (empty_cache.root / "tools").exists()


def test_folder_sizes_count_entries_and_bytes(empty_cache):
    folder = empty_cache.root / "tests"
    assert folder_size(folder) == FolderSize(0, 0)
    for name, size in {"a/one": 10, "a/inner/two": 20, "b/three": 30, ".b.lock": 1}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * size)
    (empty_cache.root / "large").write_bytes(b"x" * 1000)
    (folder / "a" / "link").symlink_to(empty_cache.root)
    assert folder_size(folder) == FolderSize(2, 61)


@pytest.mark.e2e
def test_only_sessions_of_killed_evaluators_are_removed(empty_cache, engine):
    killed = empty_cache.root / "sessions" / "killed"
    killed.mkdir(parents=True)
    (killed / "lock").touch()
    with empty_cache.session_folder() as living:
        list(prune_cache(empty_cache, engine(), everything=True))
        assert living.is_dir()
    assert not killed.exists()


@pytest.mark.e2e
def test_locks_of_dead_owners_are_removed(empty_cache, engine):
    (empty_cache.root / "owners").mkdir()
    for name in ("1-dead", "2-alive"):
        (empty_cache.root / "owners" / name).touch()
    with (empty_cache.root / "owners" / "2-alive").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        list(prune_cache(empty_cache, engine(), everything=False))
        assert [path.name for path in (empty_cache.root / "owners").iterdir()] == ["2-alive"]


@pytest.mark.e2e
def test_objects_of_dead_owners_are_removed_from_the_engine(empty_cache, engine, dead, tmp_path):
    kept = {**dead, **entry(empty_cache, "layers", "v-kept\ni-kept")}
    alive = {OWNER: "another-machine:/lock"}
    command = engine(
        [("c-dead", dead), ("c-alive", alive)],
        [("v-dead", dead), ("v-kept", kept), ("v-alive", alive), ("v-dropped", kept)],
        {"i-dead": dead, "i-kept": kept, "i-alive": alive, "i-dropped": kept},
    )
    lines = [str(action) for action in prune_cache(empty_cache, command, everything=False)]
    # Some engines remove none of several objects where one cannot be removed: so those that stay are tried one by one.
    images = ["rmi i-dead", "rmi i-dead i-dropped", "rmi i-dropped"]
    volumes = ["volume rm v-dead", "volume rm v-dead v-dropped", "volume rm v-dropped"]
    assert removed(tmp_path) == ["rm c-dead", *images, *volumes]
    gone = ("c-dead", "v-dead", "v-dropped", "i-dead", "i-dropped")
    # This engine removes nothing, and an object that is still there is not reported as removed.
    assert lines == [f"{command}: {name} cannot be removed: is it in use?" for name in gone]


@pytest.mark.e2e
def test_everything_includes_the_engine_s_objects_of_this_cache_alone(empty_cache, engine, dead, tmp_path):
    elsewhere = Cache(tmp_path / "elsewhere")
    here, there = entry(empty_cache, "tools", "v-here i-here"), entry(elsewhere, "tools", "v-there i-there")
    command = engine(
        volumes=[("v-here", {**dead, **here}), ("v-there", {**dead, **there})],
        images={"i-here": {**dead, **here}, "i-there": {**dead, **there}},
    )
    list(prune_cache(empty_cache, command, everything=True))
    assert removed(tmp_path) == ["rmi i-here", "volume rm v-here"]


def test_the_cache_is_pruned_without_an_engine(empty_cache):
    entry(empty_cache, "tools", "")
    lines = [str(action) for action in prune_cache(empty_cache, "no-such-engine", everything=True)]
    assert not (empty_cache.root / "tools").exists()
    assert not [line for line in lines if "no-such-engine" in line]


@pytest.mark.e2e
def test_an_engine_that_does_not_answer_is_reported(empty_cache, tmp_path):
    (tmp_path / "docker").write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n")
    (tmp_path / "docker").chmod(0o755)
    lines = [str(action) for action in prune_cache(empty_cache, str(tmp_path / "docker"), everything=False)]
    assert "left alone" in lines[-1]
    assert "no daemon answers" in lines[-1]
