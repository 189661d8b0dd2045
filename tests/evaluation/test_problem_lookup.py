"""Folders in which problems are looked up, and their order."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from slop_code.errors import UsageError
from slop_code.evaluation.problem.problem_lookup import find_folder, find_problem, problems_folders, problems_in

CONFIG = "{name: words, version: 1, description: '', tags: [], entry_file: a.py, checkpoints: {checkpoint_1: {}}}"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    for name in ("SCBENCH_PROBLEMS_DIR", "SCBENCH_PROBLEMS_PATH", "SCBENCH_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def add(folder, name="words"):
    (folder / name).mkdir(parents=True)
    (folder / name / "config.yaml").write_text(CONFIG)


@pytest.mark.parametrize(
    ("given", "variables", "expected"),
    [
        ("option", {"DIR": "dir", "PATH": "path", "HOME": "home"}, ["option"]),
        (None, {"DIR": "dir", "PATH": "path", "HOME": "home"}, ["dir"]),
        (None, {"PATH": "path", "HOME": "home"}, ["path", "home/problems", "problems"]),
        (None, {"HOME": "home"}, ["home/problems", "problems"]),
        (None, {"HOME": "nowhere"}, ["problems"]),
        (None, {}, ["user/.cache/scbench/problems", "problems"]),
        (None, {"DIR": "", "PATH": "", "HOME": ""}, ["user/.cache/scbench/problems", "problems"]),
    ],
)
def test_the_folders_and_their_order(here, monkeypatch, given, variables, expected):
    add(here / "home/problems")
    add(here / "user/.cache/scbench/problems")
    for name, value in variables.items():
        variable = "SCBENCH_HOME" if name == "HOME" else f"SCBENCH_PROBLEMS_{name}"
        monkeypatch.setenv(variable, str(here / value) if value else "")
    found = problems_folders(here / given if given else None)
    assert [str(here / folder) for folder in found] == [str(here / folder) for folder in expected]


def test_the_first_folder_that_has_the_problem_is_taken(here, monkeypatch):
    monkeypatch.setenv("SCBENCH_PROBLEMS_PATH", "flat")
    add(here / "problems")
    assert find_problem("words", None).path == here / "problems/words"
    add(here / "flat")
    assert find_problem("words", None).path == here / "flat/words"
    assert find_folder("other", problems_folders(None)) is None
    assert problems_in(*problems_folders(None)) == {"words": Path("flat/words")}


def test_a_folder_without_a_config_yaml_is_no_problem(here, monkeypatch):
    """It hides no problem of this name in a later folder."""
    monkeypatch.setenv("SCBENCH_PROBLEMS_PATH", "flat")
    add(here / "problems")
    (here / "flat/words").mkdir(parents=True)
    assert find_folder("words", problems_folders(None)) == Path("problems/words")
    assert problems_in(*problems_folders(None)) == {"words": Path("problems/words")}


def test_the_error_names_all_folders_that_were_searched(here, monkeypatch):
    monkeypatch.setenv("SCBENCH_PROBLEMS_PATH", "flat")
    add(here / "problems")
    with pytest.raises(UsageError, match=r"no problem 'other' in flat \(no such folder\), problems: there is words;"):
        find_problem("other", None)


@pytest.mark.parametrize("given", ["wrods", "problems/wrods"])
def test_a_misspelt_problem_names_the_near_one(here, given):
    add(here / "problems")
    with pytest.raises(UsageError, match=r"wrods.*; did you mean 'words'\?$"):
        find_problem(given, None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("./problems", "problems: a folder of problems; give one of them: words"),
        ("problems/words/config.yaml", "problems/words/config.yaml: a file; give the folder of the problem"),
    ],
)
def test_another_path_than_that_of_a_problem_says_what_to_give(here, given, message):
    add(here / "problems")
    with pytest.raises(UsageError, match=f"^{message}$"):
        find_problem(given, None)


@pytest.mark.parametrize("given", ["words", "problems/words", "."])
@pytest.mark.parametrize(
    ("other", "message"),
    [("config.yml", "has no config.yaml (there is config.yml)"), ("notes.txt", "has no config.yaml")],
)
def test_a_folder_without_config_yaml_is_named(here, monkeypatch, given, other, message):
    add(here / "problems")
    folder = here / "problems/words"
    (folder / "config.yaml").rename(folder / other)
    name, end = "problems/words", ""
    if given == ".":
        monkeypatch.chdir(folder)
        name, end = "the current folder", "; give the name or the path of a problem: there are none"
    with pytest.raises(UsageError) as error:
        find_problem(given, None)
    assert str(error.value) == f"{name} {message}{end}"


def test_a_folder_that_may_not_be_read_is_named(here, monkeypatch):
    def refuse(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    (here / "problems/words").mkdir(parents=True)
    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(UsageError, match=r"^problems/words: cannot be read: Permission denied$"):
        find_problem("words", None)


def test_a_folder_of_problems_that_does_not_exist_is_named(here):
    with pytest.raises(UsageError, match=r"^no problem 'words' in problems \(no such folder\): there are none; give"):
        find_problem("words", None)


def test_without_a_folder_in_the_home_nothing_changes(here):
    assert [str(folder) for folder in problems_folders(None)] == ["problems"]
