"""Definitions in a project, and in single sources."""

from collections.abc import Callable
from pathlib import Path

import pytest

Check = Callable[..., None]
Write = Callable[[dict[str, str]], Path]


def test_list_of_a_project(check: Check, bookshop: Path, expected: Callable[[str], str]) -> None:
    check("list", bookshop, stdout=expected("list"))


def test_list_of_a_folder_in_it(check: Check, bookshop: Path) -> None:
    lines = [
        "test_shelf.py:6 class TestShelf",
        "test_shelf.py:7 method TestShelf.test_a_full_shelf_takes_no_book",
        "test_shelf.py:16 function test_label",
        "test_shelf.py:22 function helper",
    ]
    check("list", bookshop / "checks", stdout="\n".join(lines))


@pytest.mark.parametrize(
    ("name", "stdout"),
    [
        ("add", "shop/shelf.py:18 method Shelf.add"),
        ("Shelf.add", "shop/shelf.py:18 method Shelf.add"),
        ("__init__", "shop/orders.py:19 method Queue.__init__\nshop/shelf.py:14 method Shelf.__init__"),
        ("Books", "shop/shelf.py:7 type Books"),
    ],
)
def test_find(check: Check, bookshop: Path, name: str, stdout: str) -> None:
    check("find", name, bookshop, stdout=stdout)


@pytest.mark.functionality
@pytest.mark.parametrize(
    ("source", "stdout"),
    [
        ("@first\n@second\ndef f(): ...\n", "a.py:3 function f"),
        (
            "async def f():\n    class C:\n        def m(self): ...\n",
            "a.py:1 function f\na.py:2 class f.C\na.py:3 method f.C.m",
        ),
        (
            "class C:\n    def m(self):\n        def inner(): ...\n",
            "a.py:1 class C\na.py:2 method C.m\na.py:3 function C.m.inner",
        ),
        ("class C[T: int]:\n    type Pair = tuple[T, T]\n", "a.py:1 class C\na.py:2 type C.Pair"),
        ("match 1:\n    case 1:\n        def f(): ...\n", "a.py:3 function f"),
        ('text = f"{", ".join(names)}"\ng = lambda: 1\ndef f(): ...\n', "a.py:3 function f"),
    ],
)
def test_definitions_of_a_source(check: Check, write: Write, source: str, stdout: str) -> None:
    check("list", write({"a.py": source}), stdout=stdout)


@pytest.mark.functionality
def test_only_python_sources_are_read(check: Check, write: Write) -> None:
    text = "class C: ...\n"
    names = ["b.py", "B.py", "a/b.py", "a.py", "a/.b/c.py", ".venv/a.py", "a.pyi", "py", "notes.txt"]
    lines = [f"{name}:1 class C" for name in ("B.py", "a.py", "a/b.py", "b.py")]
    check("list", write(dict.fromkeys(names, text)), stdout="\n".join(lines))


@pytest.mark.functionality
def test_a_folder_without_definitions(check: Check, write: Write) -> None:
    folder = write({"notes.txt": "", "empty.py": ""})
    check("list", folder, stdout="")
    check("find", "f", folder, code=1, stderr='rollcall: no definition of "f"')


@pytest.mark.functionality
def test_sources_are_not_run(check: Check, write: Write, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    check("list", write({"a.py": f"open({str(mark)!r}, 'w')\ndef f(): ...\n"}), stdout="a.py:2 function f")
    assert not mark.exists()


@pytest.mark.error
def test_missing_folder(check: Check, tmp_path: Path, write: Write) -> None:
    for path in (tmp_path / "none", write({"a.py": ""}) / "a.py"):
        check("list", path, code=1, stderr=f"rollcall: {path}: no such folder")


@pytest.mark.error
@pytest.mark.parametrize("text", ["def f(:\n", "class C:\n", "\0"])
def test_a_source_that_is_not_python(check: Check, write: Write, text: str) -> None:
    folder = write({"a.py": "def f(): ...\n", "b/c.py": text, "d.py": text})
    check("find", "f", folder, code=1, stderr="rollcall: b/c.py: not Python")


@pytest.mark.error
def test_nothing_is_found(check: Check, bookshop: Path) -> None:
    check("find", "Shel", bookshop, code=1, stderr='rollcall: no definition of "Shel"')


@pytest.mark.error
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "no command"),
        (["count", "."], 'unknown command "count"'),
        (["list"], "wrong number of arguments for list"),
        (["find", "f"], "wrong number of arguments for find"),
    ],
)
def test_wrong_use(check: Check, args: list[str], message: str) -> None:
    check(*args, code=2, stderr=f"rollcall: {message}")
