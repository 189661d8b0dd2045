import pytest

from slop_code._suggestions import first_names
from slop_code.authoring.check.failure_text import (
    MAX_DETAIL_BYTES,
    MAX_LINE_BYTES,
    MAX_LINES,
    failure_reason,
    first_lines,
    last_lines,
    outcome_verb,
    shown_test,
)
from tests.authoring.reference_results import case

LONGREPR = """run = <function call>

    def test_one_word(run):
>       assert run("hello").stdout == "HELLO\\n"
E       AssertionError: assert 'hello' == 'HELLO'
E         - HELLO
E         + hello
"""
NAME_ERROR = """E   Failed: ran: slop-run main.py
E   expected: exit status 0
E   stderr:
E   found: exit status 1
E   stderr:
E   Traceback (most recent call last):
E     File "/workspace/main.py", line 1, in <module>
E   NameError: name 'prnt' is not defined
"""


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (LONGREPR, "assert 'hello' == 'HELLO'"),
        (NAME_ERROR, "NameError: name 'prnt' is not defined"),
        ("no marks\nlast line\n\n", "no marks"),
        ("not today", "not today"),
        (None, "it left no message"),
        ("", "it left no message"),
        ("E   red \x1b[31m\x07 text", r"red \x1b[31m\x07 text"),
    ],
)
def test_one_line_says_why(message, line):
    assert failure_reason(message) == line


def test_whatever_a_test_prints_stays_within_bounds():
    assert len(failure_reason("E  " + "x" * 10_000)) <= MAX_LINE_BYTES
    assert len(first_lines("y" * 100_000)) <= MAX_DETAIL_BYTES
    assert first_lines("a\n" * 100).count("\n") == MAX_LINES - 1
    assert last_lines("a\n" * 100 + "the error").splitlines()[::19] == ["[... 82 lines before]", "the error"]
    assert last_lines("a\nb") == "a\nb"
    assert shown_test(case("test_x[\x1b]0;a\nb]")) == "test_checkpoint_1.py::test_x[\\x1b]0;a b]"


@pytest.mark.parametrize(
    ("status", "markers", "expected"),
    [
        ("failed", [], "fails"),
        ("error", [], "ends in an error"),
        ("skipped", ["skip"], "is skipped"),
        ("skipped", ["xfail"], "is expected to fail"),
        ("failed", ["xfail"], "fails"),
    ],
)
def test_the_verb_of_an_outcome(status, markers, expected):
    assert outcome_verb(case("test_x", status, markers=markers)) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["a"], "a"), (["a", "b", "c"], "a, b, c"), (["a", "b", "c", "d", "e"], "a, b, c and 2 more")],
)
def test_only_the_first_names_are_listed(names, expected):
    assert first_names(names, 3) == expected
