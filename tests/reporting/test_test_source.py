"""Sources of test functions."""

import hashlib
from pathlib import PurePosixPath

import pytest

from slop_code.reporting.test_source import MAX_FILE_BYTES, MAX_LINES, TestSources, function_sources

MODULE = '''"""Tests."""
import pytest
raise SystemExit("it is never imported")

@pytest.mark.parametrize(
    "name", ["a", "b"],
)
def test_show(name):
    assert name


class TestShop:
    @staticmethod
    def test_empty():
        def inner():
            pass

    class TestMore:
        async def test_deep(self): pass

match 1:
    case 1:
        def test_hidden(): return "\\d"

if True:
    def test_twice(): pass
    def test_again(): pass
    class TestTwice:
        def test_a(self): pass
else:
    def test_twice(): return 2
    class TestTwice:
        def test_a(self): return 2

def test_again(): return 2
'''
SHOW = '@pytest.mark.parametrize(\n    "name", ["a", "b"],\n)\ndef test_show(name):\n    assert name'


def sources(folder, text, name="test_a.py"):
    data = text.encode() if isinstance(text, str) else text
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    return TestSources(folder, {PurePosixPath(name): hashlib.sha256(data).hexdigest()}.get)


@pytest.mark.parametrize(
    ("test_id", "expected"),
    [
        ("test_show[a]", SHOW),
        ("test_show[a[b]::c]", SHOW),
        ("TestShop::test_empty", "@staticmethod\ndef test_empty():\n    def inner():\n        pass"),
        ("TestShop::TestMore::test_deep", "async def test_deep(self): pass"),
        ("test_hidden", 'def test_hidden(): return "\\d"'),
        ("test_twice", None),
        ("TestTwice::test_a", None),
        ("test_again", None),
        ("test_empty", None),
        ("inner", None),
        ("TestShop", None),
        ("", None),
        ("::", None),
    ],
    ids=range(13),
)  # fmt: skip
def test_the_source_of_a_test_is_found_by_its_id(tmp_path, test_id, expected):
    assert sources(tmp_path, MODULE).of(PurePosixPath("test_a.py"), test_id) == expected


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_lines_are_counted_as_python_does(end):
    text = 'A = "\x0c \u2028"\ndef test_a():\n    pass\n'.replace("\n", end)
    assert function_sources(text.encode()) == {"test_a": "def test_a():\n    pass"}


def test_a_long_test_is_cut(tmp_path):
    text = "def test_a():\n" + "    x = 1\n" * (MAX_LINES + 9)
    shown = sources(tmp_path, text).of(PurePosixPath("test_a.py"), "test_a")
    assert len(shown.split("\n")) == MAX_LINES + 1
    assert shown.endswith("\n[... 10 more lines]")


def test_a_file_with_other_content_than_the_evaluated_one_has_no_sources(tmp_path):
    known = sources(tmp_path, "def test_a(): pass")
    (tmp_path / "test_a.py").write_text("def test_a(): raise")
    assert known.of(PurePosixPath("test_a.py"), "test_a") is None


@pytest.mark.parametrize("name", ["../secret.py", "/etc/passwd", "test_b.py", "", "a\0b"], ids=range(5))
def test_only_files_of_the_tests_are_read(tmp_path, name):
    (tmp_path / "secret.py").write_text("def test_a(): pass")
    assert sources(tmp_path / "tests", "def test_a(): pass").of(PurePosixPath(name), "test_a") is None


def test_a_link_is_not_followed(tmp_path):
    known = sources(tmp_path, "def test_a(): pass", "real.py")
    (tmp_path / "test_a.py").symlink_to("real.py")
    linked = TestSources(tmp_path, {PurePosixPath("test_a.py"): known.digest_of(PurePosixPath("real.py"))}.get)
    assert linked.of(PurePosixPath("test_a.py"), "test_a") is None


@pytest.mark.e2e
@pytest.mark.parametrize(
    "text",
    [
        "def test_a(",
        "def test_a(): pass\0",
        b"\xff\xfe",
        b"# coding: utf-7\ndef test_a(): pass\xff",
        "x = " + "(" * 10_000 + ")" * 10_000,
        "x = " + "-" * 200_000 + "1",
        "x = a" + ".b" * 200_000,
        "x = " + "1+" * 200_000 + "1",
        "if a: pass\n" + "elif b: pass\n" * 20_000,
        "def test_a(): pass\n" + "#" * MAX_FILE_BYTES,
    ],
    ids=["cut", "zero", "bytes", "coding", "nested", "minus", "dots", "plus", "elif", "large"],
)
def test_a_hostile_file_has_no_sources(tmp_path, text):
    assert sources(tmp_path, text).of(PurePosixPath("test_a.py"), "test_a") is None
