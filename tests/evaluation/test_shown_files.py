"""The judge's record of opened files, without a judge."""

import ast
import os
import sys
from pathlib import Path

import pytest

from slop_code.evaluation.judge import shown_files


@pytest.fixture
def recorder(tmp_path):
    (tmp_path / "tests").mkdir()
    return shown_files.ShownFilesRecorder(str(tmp_path / "tests"), str(tmp_path), ["test_a.py"])


@pytest.mark.parametrize(
    ("path", "flags", "read"),
    [
        ("tests/data/a.txt", os.O_RDONLY, ["data/a.txt"]),
        (b"tests/data/a.txt", None, ["data/a.txt"]),
        ("tests/../tests/a.txt", os.O_RDONLY | os.O_CLOEXEC, ["a.txt"]),
        ("tests/a.txt", os.O_WRONLY, []),
        ("tests/a.txt", os.O_RDWR, []),
        ("tests/test_a.py", os.O_RDONLY, []),
        ("tests/project/test_a.py", os.O_RDONLY, ["project/test_a.py"]),
        ("tests/__pycache__/a.pyc", os.O_RDONLY, []),
        ("testsuite/a.txt", os.O_RDONLY, []),
        ("tests", os.O_RDONLY, []),
        (7, os.O_RDONLY, []),
        ("tests/a\0b", os.O_RDONLY, ["a\0b"]),
    ],
)
def test_files_that_tests_open_for_reading_are_recorded(recorder, tmp_path, monkeypatch, path, flags, read):
    monkeypatch.chdir(tmp_path)
    recorder.hook("open", (path, "r", flags))
    assert list(recorder.read) == read


@pytest.mark.parametrize(
    ("source", "target", "copied"),
    [
        ("tests/a.txt", "/tmp/a.txt", ["a.txt"]),
        ("tests/a.txt", "tests/b.txt", []),
        ("elsewhere/a.txt", "/tmp/a.txt", []),
        (None, None, []),
    ],
)
def test_what_tests_copy_away(recorder, tmp_path, monkeypatch, source, target, copied):
    monkeypatch.chdir(tmp_path)
    recorder.hook("shutil.copyfile", (source, target))
    assert list(recorder.copied) == copied


def test_odd_events_are_left_alone(recorder):
    recorder.hook("open", ())
    recorder.hook("open", ("tests/a", "r", "no number"))
    recorder.hook("shutil.copyfile", ("one",))
    assert (recorder.read, recorder.copied) == ({}, {})


def test_no_more_than_so_many(recorder, tmp_path, monkeypatch):
    monkeypatch.setattr(shown_files, "MAX_FILES", 3)
    for number in range(5):
        recorder.hook("open", (f"{tmp_path}/tests/{number}.txt", "r", 0))
        (tmp_path / "tests" / f"{number}.txt").touch()
    assert len(recorder.read) == 3
    assert len(list(shown_files.files_below(str(tmp_path / "tests")))) == 3


def test_it_needs_the_standard_library_and_pytest_alone():
    tree = ast.parse(Path(shown_files.__file__).read_text())
    direct = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    parts = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {str(name).partition(".")[0] for name in [*direct, *parts]}
    assert names - {*sys.stdlib_module_names, "pytest"} == set()
