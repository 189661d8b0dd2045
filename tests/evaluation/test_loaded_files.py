"""Files that stay loaded: loaded once while nothing about them changes, and again after every change."""

from __future__ import annotations

import os

import pytest

from slop_code.errors import ConfigError
from slop_code.evaluation.evaluator import loaded_files
from slop_code.evaluation.evaluator.loaded_files import LoadedFiles
from slop_code.evaluation.evaluator.warm_state import WarmState


@pytest.fixture
def settled(monkeypatch):
    """As if every file had been written long ago."""
    monkeypatch.setattr(loaded_files, "SETTLED_NS", -(10**12))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_text("one")
    return path


@pytest.mark.usefixtures("settled")
def test_an_unchanged_file_is_loaded_once(file):
    loaded = LoadedFiles()
    values = [loaded.get(file, lambda: [file.read_text()]) for _ in range(3)]
    assert values[0] == ["one"]
    assert values[0] is values[1] is values[2]
    loaded.clear()
    assert loaded.get(file, lambda: [file.read_text()]) is not values[0]


def overwrite(file):
    file.write_text("two")


def replace(file):
    file.with_name("new").write_text("two")
    file.with_name("new").rename(file)


def overwrite_and_set_back_the_time(file):
    info = file.stat()
    file.write_text("two")
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("change", [overwrite, replace, overwrite_and_set_back_the_time])
def test_a_changed_file_is_loaded_again(file, change):
    loaded = LoadedFiles()
    assert loaded.get(file, file.read_text) == "one"
    change(file)
    assert loaded.get(file, file.read_text) == "two"


@pytest.mark.usefixtures("settled")
def test_a_file_that_is_gone_is_not_taken_from_memory(file):
    loaded = LoadedFiles()
    loaded.get(file, file.read_text)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        loaded.get(file, file.read_text)


@pytest.mark.usefixtures("settled")
def test_a_file_that_changes_while_it_is_loaded_is_loaded_again(file):
    loaded = LoadedFiles()

    def read():
        text = file.read_text()
        file.write_text("two")
        return text

    assert loaded.get(file, read) == "one"
    assert loaded.get(file, file.read_text) == "two"


def test_a_file_that_was_just_written_is_loaded_again(file):
    """The next change may leave the same time."""
    loaded = LoadedFiles()
    os.utime(file, ns=(10**18, 10**18))  # the time of the last change of its attributes is still now
    assert loaded.get(file, object) is not loaded.get(file, object)


@pytest.mark.usefixtures("settled")
def test_the_least_recently_used_is_dropped_first(tmp_path, monkeypatch):
    monkeypatch.setattr(loaded_files, "MAX_LOADED", 2)
    files = [tmp_path / name for name in "abc"]
    for file in files:
        file.touch()
    loaded, counts = LoadedFiles(), []
    for number in (0, 1, 0, 2, 0, 1):
        loaded.get(files[number], lambda number=number: counts.append(number))
    assert counts == [0, 1, 2, 1]


@pytest.mark.usefixtures("settled")
def test_a_problem_and_its_environment_stay_loaded_until_they_change(make_problem, tmp_path):
    warm = WarmState()
    folder = make_problem({"test_checkpoint_1.py": ""}).path
    problem = warm.problem(folder, None)
    assert warm.problem(str(folder), None) is problem is warm.problem(folder.name, folder.parent)
    environment = warm.environment(problem, "local")[0]
    assert warm.environment(problem, None)[0] is environment
    (folder / "environment.yaml").write_text("{name: own, type: local}")
    assert warm.environment(problem, None)[0].name == "own"
    (folder / "config.yaml").write_text((folder / "config.yaml").read_text() + "timeout: 7\n")
    assert warm.problem(folder, None).checkpoint(1).timeout == 7
    (folder / "config.yaml").write_text("name: [")
    with pytest.raises(ConfigError):
        warm.problem(folder, None)
