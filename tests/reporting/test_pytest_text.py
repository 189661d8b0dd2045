"""pytest's report of a failure for people."""

import pytest

from slop_code.reporting.html.pytest_text import pytest_text

SOURCE = "    def test_show(check, name):\n>       check(name)\nE       Failed: no"


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ("check = <function check.<locals>.compare at 0xffffb67e6ac0>", ""),
        ("recipes = PosixPath('/workspace/data')", ""),
        ("name = 'soup', servings = 1", "name = 'soup', servings = 1\n\n"),
        ("check = <function f at 0xffffb67e6ac0>\nname = 'soup'", "name = 'soup'\n\n"),
        ("amounts = ['1 cup', '1/2 cup'], total = '1 1/2 cup'", "total = '1 1/2 cup'\n\n"),
        ('a = -1.5e+3, b = None, c = True, d = "it\'s"', 'a = -1.5e+3, b = None, c = True, d = "it\'s"\n\n'),
        ("self = <test_a.TestA object at 0xffffb67e6ac0>", ""),
        ("table = a\n  b\nc", ""),
        (f"text = '{'x' * 201}'", ""),
        ("text = 'it\\'s', more = 2", "text = 'it\\'s', more = 2\n\n"),
    ],
    ids=range(10),
)
def test_only_arguments_with_simple_values_are_kept(arguments, kept):
    assert pytest_text(f"{arguments}\n\n{SOURCE}") == f"{kept}{SOURCE}"


def test_each_entry_of_a_traceback_loses_its_arguments():
    line = "_ _ _ _ _ _ "
    message = f"box = <Box object at 0xffffb67e6ac0>\n\n{SOURCE}\n\na.py:1: \n{line}\n\nargs = (1,)\n\n{SOURCE}"
    assert pytest_text(message) == f"{SOURCE}\n\na.py:1: \n{line}\n\nargs = (1,)\n\n{SOURCE}"
    message = f"box = <Box object>\n\n{SOURCE}\n\na.py:1: \n{line}\nargs = (1,)\n\n{SOURCE}"
    assert pytest_text(message) == f"{SOURCE}\n\na.py:1: \n{line}\n{SOURCE}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("E   <Box object at 0xffffb67e6ac0> != 3", "E   <Box object> != 3"),
        ("E   <Thread(a, started 1) at 0x7f00aabbccdd, more>", "E   <Thread(a, started 1), more>"),
        ("E   expected: jump at 0x10000000", "E   expected: jump at 0x10000000"),
        ("E   <a at 0x10>", "E   <a at 0x10>"),
    ],
    ids=range(4),
)
def test_only_addresses_of_objects_are_removed(text, expected):
    assert pytest_text(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "set-up failed: no", "a = 1", "a = 1\n\nno source", "E   a = 1\n\n    def f():", "a == 1\n\n    x"],
    ids=range(7),
)
def test_other_messages_stay_as_they_are(text):
    assert pytest_text(text) == text


@pytest.mark.e2e
@pytest.mark.parametrize(
    "text",
    [
        "_ _ \na = 1\n",
        "_ _\n",
        "_ ",
        "a = '",
        ", a = '\\",
        ", a = ' = \"",
        " at 0xffffffff",
        "<a at 0xffffffffffff ",
        "a = 1\n\n",
        "a" * 99 + " = ",
    ],
    ids=range(10),
)
def test_hostile_text_takes_linear_time(text):
    """A search whose time grows faster would not end within a minute."""
    hostile = "a = 1, " + text * (2_000_000 // len(text)) + "\n\n    def f():"
    assert len(pytest_text(hostile)) <= len(hostile)
