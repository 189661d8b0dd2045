"""The canary of a problem in a submission: a bounded search, whose finding is a warning."""

from __future__ import annotations

import os

import pytest

from slop_code.evaluation import ProblemConfig
from slop_code.evaluation.problem import canary
from slop_code.evaluation.problem.canary import canary_warnings

TEXT = "words-canary 5d0e6c1a"


@pytest.fixture
def warnings(tmp_path):
    def found(files, text=TEXT):
        for name, content in files.items():
            path = tmp_path / "submission" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        about = {"name": "words", "version": "1", "description": "", "tags": [], "entry_file": "main.py"}
        problem = ProblemConfig(**about, canary=text, checkpoints={"checkpoint_1": {}})
        return list(canary_warnings(problem, tmp_path / "submission"))

    return found


@pytest.mark.parametrize(
    ("files", "text", "found"),
    [
        ({"main.py": b"print()\n"}, TEXT, None),
        ({"main.py": b"# words-canary 5d0e6c1a\n"}, TEXT, "main.py"),
        ({"main.py": b"", "a/b/notes.txt": b"x words-canary 5d0e6c1a y"}, TEXT, "a/b/notes.txt"),
        ({"main.py": b"# words-canary 5d0e6c1a\n"}, f"  {TEXT}\n", "main.py"),
        ({"main.py": b"# words-canary 5d0e6c1a\n"}, None, None),
        ({"main.py": b"# words\n"}, "words", None),
        ({"data.bin": b"\0words-canary 5d0e6c1a"}, TEXT, None),
        ({".evaluation_tests/a.py": b"words-canary 5d0e6c1a"}, TEXT, None),
    ],
)
def test_the_first_text_file_with_the_canary_is_named(warnings, files, text, found):
    expected = f"the submission has the canary of the problem, in {found}: its author may have seen the problem"
    assert warnings(files, text) == ([expected] if found else [])


def test_the_warning_repeats_neither_the_canary_nor_control_characters(warnings):
    [warning] = warnings({"\x1b[31m.py": TEXT.encode()})
    assert TEXT not in warning
    assert "\x1b" not in warning


def test_the_search_is_bounded(warnings, monkeypatch, tmp_path):
    monkeypatch.setattr(canary, "MAX_FILE_BYTES", 100)
    assert warnings({"large.txt": b"x" * 2_000_000 + TEXT.encode()}) == []
    monkeypatch.setattr(canary, "MAX_FILES", 1)
    assert warnings({"a.txt": b"", "b.txt": TEXT.encode()}) == []


def test_links_are_not_followed_and_pipes_not_waited_for(warnings, tmp_path):
    (tmp_path / "outside.txt").write_text(TEXT)
    (tmp_path / "submission").mkdir()
    (tmp_path / "submission/link.txt").symlink_to(tmp_path / "outside.txt")
    os.mkfifo(tmp_path / "submission/pipe")
    assert warnings({}) == []


def test_a_submission_that_is_gone_has_no_warning(warnings):
    assert warnings({}) == []
