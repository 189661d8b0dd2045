"""Files of submissions: those that take long to parse, and those that only look so."""

from __future__ import annotations

import pytest

from slop_code.execution.dependencies import file_parsers
from slop_code.execution.dependencies.file_parsers import (
    MAX_DEPTH,
    MAX_INI_LENGTH,
    MAX_TOML_STEPS,
    install_requires,
    parse_toml,
)
from tests.marks import in_long

pytestmark = pytest.mark.e2e
VERSIONS = [f"six=={number}.0" for number in range(1 + int(MAX_TOML_STEPS**0.5))]
LISTED = f"x = {VERSIONS}\nday = 2024-01-01\n"
PATH = ".".join("a" * 20)
SLOW_TOML = {
    "keys": lambda: f"[{PATH}]\n" + "".join(f"{PATH}.k{number} = 1\n" for number in range(100_000)),
    "quoted keys": lambda: "\n".join(f'{PATH}."\u2028{number}".{PATH} = 1' for number in range(60_000)),
}
"""Each takes more than ten seconds of processor time."""

SLOW_INI = f"[options]\ninstall_requires = six\nx{' ' * 100_000}y = 1\n"


@pytest.fixture
def short_limit(monkeypatch):
    monkeypatch.setattr(file_parsers, "PARSE_CPU_S", 1)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("", {}),
        ("a.b = 1\n", {"a": {"b": 1}}),
        (LISTED, {"x": VERSIONS, "day": "2024-01-01"}),
        ("a = \n", None),
        ("a = [" * 100_000, None),
        (f"{LISTED}a =\n", None),
        (f"{'.'.join('a' * MAX_DEPTH)} = []\n", None),
        (f"a = [\n{{{PATH} = [\n{{{PATH} = [\n{{{PATH} = 1}}]}}]}}]\n", None),
    ],
    ids=["empty", "key", "long line", "no value", "lists", "long line and no value", "tables", "tables in lists"],
)
def test_toml(text, parsed):
    assert parse_toml(text) == parsed


@pytest.mark.parametrize("kind", ["keys", *in_long("quoted keys")])
def test_toml_that_takes_long_is_given_up(short_limit, kind):
    assert parse_toml(SLOW_TOML[kind]()) is None


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("", ""),
        ("[options]\ninstall_requires = 1\n  2\n", "1\n2"),
        ("[DEFAULT]\ninstall_requires = 1\n[options]\n", "1"),
        ("[other]\ninstall_requires = 1\n", ""),
        ("install_requires = 1\n", None),
        ("[options]\na = 1\na = 2\n", None),
    ],
    ids=["empty", "key", "default", "other section", "no section", "key twice"],
)
@pytest.mark.parametrize("comment", ["", f"# {'x' * MAX_INI_LENGTH}\n"], ids=["short", "long"])
def test_install_requires(text, parsed, comment):
    assert install_requires(comment + text) == parsed


@pytest.mark.parametrize(
    "text", in_long(SLOW_INI, SLOW_INI.replace(" " * 100_000, "\r" * 100_000)), ids=["gap", "carriage returns"]
)
def test_a_setup_cfg_that_takes_long_is_given_up(short_limit, text):
    assert install_requires(text) is None


def test_defaults_are_not_copied_into_every_section():
    defaults = "".join(f"k{number} = {'v' * 80}\n" for number in range(5000))
    sections = "".join(f"[s{number}]\n" for number in range(20_000))
    assert install_requires(f"[DEFAULT]\n{defaults}{sections}[options]\ninstall_requires = six\n") == "six"
