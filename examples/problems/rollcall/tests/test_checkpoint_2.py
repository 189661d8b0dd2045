"""Uses of names, and kinds of definitions."""

from collections.abc import Callable
from pathlib import Path

import pytest

Check = Callable[..., None]
Write = Callable[[dict[str, str]], Path]


@pytest.mark.parametrize("name", ["Shelf", "books"])
def test_uses(check: Check, bookshop: Path, expected: Callable[[str], str], name: str) -> None:
    check("uses", name, bookshop, stdout=expected(f"uses_{name}"))


def test_unused(check: Check, bookshop: Path, expected: Callable[[str], str]) -> None:
    check("unused", bookshop, stdout=expected("unused"))


@pytest.mark.parametrize(
    ("args", "stdout"),
    [
        (["list", "-k", "type"], "shop/shelf.py:6 type Price\nshop/shelf.py:7 type Books"),
        (["find", "Full", "-k", "class"], "shop/shelf.py:11 class Shelf.Full"),
        (["unused", "-k", "method"], "shop/orders.py:30 method Queue.check\nshop/shelf.py:28 method Shelf.total"),
    ],
)
def test_kind(check: Check, bookshop: Path, args: list[str], stdout: str) -> None:
    check(*args, bookshop, stdout=stdout)


@pytest.mark.functionality
@pytest.mark.parametrize(
    ("line", "is_use"),
    [
        ("print(f'{f'{name}'}')", True),
        ("x = b.name", True),
        ("from b import name as other", True),
        ("def f(x: name): ...", True),
        ("name()", True),
        ("name = 1", False),
        ("b.name = 1", False),
        ("f(name=1)", False),
        ("'name'  # name", False),
    ],
)
def test_what_is_a_use(check: Check, write: Write, line: str, is_use: bool) -> None:
    """Each source uses `name` in its last line."""
    text = f"{line}\n(\n    b.c\n     .name, name)\n"
    lines = [f"a.py:1 {line}", "a.py:4 .name, name)"]
    check("uses", "name", write({"a.py": text}), stdout="\n".join(lines if is_use else lines[1:]))


@pytest.mark.functionality
def test_names_that_others_call_are_not_unused(check: Check, write: Write) -> None:
    text = "class test_c:\n    def __len__(self): ...\n    def test_m(self): ...\ndef test_f(): ...\ndef __f(): ...\n"
    check("unused", write({"a.py": text}), stdout="a.py:1 class test_c\na.py:5 function __f")


@pytest.mark.functionality
def test_the_last_kind_counts(check: Check, bookshop: Path) -> None:
    functions = "test_shelf.py:16 function test_label\ntest_shelf.py:22 function helper"
    check("list", "-k", "class", bookshop / "checks", "-k", "function", stdout=functions)


@pytest.mark.error
def test_nothing_is_used(check: Check, bookshop: Path) -> None:
    check("uses", "total", bookshop, code=1, stderr='rollcall: no use of "total"')


@pytest.mark.error
def test_nothing_of_the_kind(check: Check, bookshop: Path) -> None:
    check("find", "-k", "type", "Shelf", bookshop, code=1, stderr='rollcall: no definition of "Shelf"')


@pytest.mark.error
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["uses", "-k", "class", "f", "."], 'unknown option "-k"'),
        (["list", "-x"], 'unknown option "-x"'),
        (["list", ".", "-k"], "-k needs a kind"),
        (["unused", "-k", "module", "-x"], 'unknown kind "module"'),
        (["uses", "f"], "wrong number of arguments for uses"),
    ],
)
def test_wrong_use(check: Check, args: list[str], message: str) -> None:
    check(*args, code=2, stderr=f"rollcall: {message}")


@pytest.mark.regression
def test_without_options_all_is_as_before(check: Check, bookshop: Path, expected: Callable[[str], str]) -> None:
    check("list", bookshop, stdout=expected("list"))
    check("find", "Shelf.add", bookshop, stdout="shop/shelf.py:18 method Shelf.add")
