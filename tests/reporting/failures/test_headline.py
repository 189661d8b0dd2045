"""Headline of failure messages."""

import pytest

from slop_code.reporting.failures.headline import headline

COMMAND = "E       Failed: ran: slop-run main.py shop - --servings two\nE       \n"


def message(expected, found, command=COMMAND):
    lines = [f"expected: {expected[0]}", *expected[1:], "", f"found: {found[0]}", *found[1:]]
    return command + "\n".join(f"E       {line}" for line in lines) + "\n\ntest_a.py:3: Failed"


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("", ""),
        ("\n  why \nmore", "why"),
        ("x = 1\nE \nE    assert 1 == 2\nE     +1", "assert 1 == 2"),
        ("Each", "Each"),
        ("why\nE  \nE ", "why"),
        ("E " + "x" * 1000, "x" * 300 + " [... 700 characters]"),
        ("\x1b[31m\ufffe\r.", "\\x1b[31m\\ufffe\\x0d."),
        # what was started is not what came of it
        ("E   AssertionError: ran: ['slop-run', 'main.py']\nE   assert 1 == 2", "assert 1 == 2"),
        ("E   AssertionError: too few\nE   assert 1 == 2", "AssertionError: too few"),
        ("E   AssertionError: ran: ['slop-run', 'main.py']", "AssertionError: ran: ['slop-run', 'main.py']"),
        (f"E   assert [{'1, ' * 200}] == [2]\nE     \nE     At index 0 diff: 1 != 2", "At index 0 diff: 1 != 2"),
        ("E   assert [1] == [2]\nE     \nE     At index 0 diff: 1 != 2", "assert [1] == [2]"),
        # what was expected and found: the first line that differs
        (message(["status 2", "stdout:"], ["status 1", "stdout:"]), "expected status 2, found status 1"),
        (message(["exit status 0", "a", "b"], ["exit status 0", "a", "c"]), "expected b, found c"),
        (message(["0", "a"], ["0", "a", "c"]), "expected nothing, found c"),
        (message(["0", "", "a"], ["0", "c"]), "expected nothing, found c"),
        (message(["0", "a", "b"], ["0", "a"]), "expected b, found nothing"),
        (message(["0", "a"], ["0", "  a"]), "expected 'a', found '  a'"),
        (message(["0", "a"], ["0", "a"], "E       Failed: why\n"), "Failed: why"),
        ("expected: 1\nfound: 2", "expected 1, found 2"),
        ("E   expected: 1\nE   and no more", "expected: 1"),
        ("E   found: 2\nE   expected: 1", "found: 2"),
    ],
)  # fmt: skip
def test_the_headline_is_the_first_line_with_a_cause(message, line):
    assert headline(message) == line


def test_a_headline_is_truncated_to_the_width():
    assert headline("E   " + "x" * 30, 10) == f"{'x' * 10} [... 20 characters]"
