"""Expressions of -k and -m, compared with pytest's own parser."""

from __future__ import annotations

import itertools

import pytest
from _pytest.mark.expression import Expression

from slop_code.evaluation.match_expression import expression_mistake

PARTS = ["(", ")", "not", "and", "a", "b[1-2]::c", "f(k=-1,x='q w',y=None)", "=", "'", "k='v'", "for", "!", "é", "\\"]


def pytest_takes(text):
    try:
        Expression.compile(text)
    except SyntaxError:
        return False
    return True


def test_pytest_takes_what_has_no_mistake_and_nothing_else():
    texts = {joint.join(parts) for joint in (" ", "") for n in range(4) for parts in itertools.product(PARTS, repeat=n)}
    texts |= {
        "((a) or not (b and not not c))",
        "a or or b",
        "f(x=1",
        "f(x=1,)",
        "f(x)",
        "f()",
        "f(class=1)",
        "a f(x=1)",
    }
    wrong = [text for text in texts if (expression_mistake(text, calls=True) is None) != pytest_takes(text)]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("(((", "column 4: expected a name, not or (; got the end"),
        ("a and", "column 6: expected a name, not or (; got the end"),
        ("a b", "column 3: expected and, or or the end; got b"),
        ("(a", "column 3: expected and, or or ); got the end"),
        ("a!", "column 2: unexpected !"),
        ("a(x=1)", "column 2: expected and, or or the end; got ("),
        ("(" * 100_000, "column 100001: expected a name, not or (; got the end"),
    ],
)
def test_a_mistake_has_a_column(text, mistake):
    assert expression_mistake(text, calls=False) == mistake
