"""Files of submissions: those that take long to parse, and those that only look so."""

from __future__ import annotations

import pytest

from slop_code.execution.dependencies.file_parsers import MAX_DOTS, MAX_LINE, parse_ini, parse_toml

pytestmark = pytest.mark.e2e
VERSIONS = [f"six=={number}.0" for number in range(MAX_DOTS + 1)]
LISTED = f"x = {VERSIONS}\nday = 2024-01-01\n"
SPACES = " " * MAX_LINE


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("", {}),
        ("a.b = 1\n", {"a": {"b": 1}}),
        (LISTED, {"x": VERSIONS, "day": "2024-01-01"}),
        ("a = \n", None),
        ("a = [" * 100_000, None),
        (f"{LISTED}a =\n", None),
        (".".join(["a"] * 500_000) + " = 1\n", None),
        ("".join(f"x{number} = {{{'a.' * 5000}a = 1}}\n" for number in range(50)), None),
    ],
    ids=["empty", "key", "long line", "no value", "deep", "long line and no value", "long key", "long keys in tables"],
)
def test_toml(text, parsed):
    assert parse_toml(text) == parsed


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("", {}),
        ("[a]\nb = 1\n  2\n", {"a": {"b": "1\n2"}}),
        (f"[a]\nb = {SPACES}1\n", {"a": {"b": "1"}}),
        ("b = 1\n", None),
        (f"b = {SPACES}1\n", None),
        (f"[options]\nx{' ' * 1_000_000}y\n", None),
    ],
    ids=["empty", "key", "long line", "no section", "long line and no section", "long gap"],
)
def test_ini(text, parsed):
    assert parse_ini(text) == parsed
