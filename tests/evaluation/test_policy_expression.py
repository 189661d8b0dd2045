import pickle

import pytest

from slop_code.errors import UsageError
from slop_code.evaluation.policy import PassPolicy, parse_policy, passes
from slop_code.evaluation.policy_expression import MAX_DEPTH, MAX_LENGTH
from tests.factories import counts


def holds(text, passed, total, no_verdict=False):
    return passes(parse_policy(text), counts(*passed), counts(*total), no_verdict)


# Core, Functionality, Error, Regression
SOME = ((4, 1, 0, 19), (4, 2, 3, 20))
FIRST = ((4, 2, 3, 0), (4, 2, 3, 0))
BROKEN_FIRST = ((3, 2, 3, 0), (4, 2, 3, 0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("core == 1", True),
        ("core == 100%", True),
        ("CORE == 1.0", True),
        ("core==1 and regression>=0.95", True),
        ("core == 1 and regression > .95", False),
        ("regression >= 95 %", True),
        ("functionality == 0.5", True),
        ("error == 0", True),
        ("error != 0", False),
        ("0.9 < regression", True),
        ("all > 82.7%", True),
        ("all < 82.8%", True),
        ("all.passed == 24 and all.total == 29 and all.failed == 5", True),
        ("error.failed <= 2", False),
        ("core.passed >= 4", True),
        ("core == regression", False),
        ("not error == 1", True),
        ("not not core == 1", True),
        ("error == 1 or core == 1 and regression == 1", False),
        ("(error == 1 or core == 1) and regression >= 0.9", True),
        ("core == 1 or error == 1 and regression == 1", True),
        ("not core == 1 or error == 0", True),
        ("not (core == 1 or error == 0)", False),
    ],
)
def test_what_an_expression_says(text, expected):
    assert holds(text, *SOME) is expected


@pytest.mark.parametrize(
    ("text", "counted", "expected"),
    [
        ("core == 1 and regression >= 0.95", FIRST, True),
        ("core == 1 and regression >= 0.95", BROKEN_FIRST, False),
        ("regression >= 0.95", FIRST, False),
        ("regression < 0.95", FIRST, False),
        ("not regression < 0.95", FIRST, False),
        ("core == 1 or regression == 1", BROKEN_FIRST, False),
        ("not (core == 1 or regression == 1)", BROKEN_FIRST, True),
        ("regression.failed == 0", FIRST, False),
        ("core == 1 and regression.failed == 0", FIRST, True),
        ("core == 1 and regression.passed >= 5", FIRST, False),
        ("all == 1", ((0, 0, 0, 0), (0, 0, 0, 0)), False),
        ("all.total == 0", ((0, 0, 0, 0), (0, 0, 0, 0)), False),
        ("not core == 1", ((0, 0, 0, 0), (0, 0, 0, 0)), False),
    ],
)
def test_a_share_of_no_tests_says_nothing(text, counted, expected):
    assert holds(text, *counted) is expected


@pytest.mark.parametrize("text", ["core == 1", "not core == 1", "core.failed == 0", "all >= 0"])
def test_without_a_verdict_nothing_holds(text):
    assert not holds(text, *SOME, no_verdict=True)


def test_shares_are_compared_exactly():
    assert holds("core == 0.3", (3, 0, 0, 0), (10, 0, 0, 0))
    assert not holds("core >= 0.333333333", (333333332, 0, 0, 0), (1000000000, 0, 0, 0))


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("core = 1", 6, "expected one of == != <= >= < >, found '='"),
        ("error", None, "write 'error == 1'"),
        ("core-case", None, "did you mean 'core-cases'?"),
        ("", 1, "expected a group or a number, found the end"),
        ("cor == 1", 1, "no group 'cor'; did you mean 'core'?"),
        ("core == 1 and", 14, "expected a group or a number, found the end"),
        ("core == 1 and and", 15, "expected a group or a number, found 'and'"),
        ("core == 1 error == 1", 11, "expected `and` or `or`, found 'error'"),
        ("(core == 1", 11, "expected `and`, `or` or `)`, found the end"),
        ("core == 1)", 10, "expected `and` or `or`, found ')'"),
        ("1 == 1", 1, "compares two numbers"),
        ("core >= 95", 9, "a share is from 0 to 1; did you mean '95%'?"),
        ("core == 1 and 101% > all", 15, "a share is from 0 to 1"),
        ("core.pased > 2", 1, "no count 'pased'; did you mean 'passed'?"),
        ("core == 1e3", 9, "expected a group or a number, found '1'"),
        ("core == -1", 9, "found '-'"),
        ("core == 0.5 == 1", 13, "expected `and` or `or`"),
        ("core == \u0661", 9, "found '\u0661'"),
        ("__import__('os')", 1, "found '_'"),
        ("core == 1; all", 10, "found ';'"),
        ("not", None, "no policy 'not'"),
        ("(" * (MAX_DEPTH + 1), MAX_DEPTH + 1, "nested more than"),
        ("not " * (MAX_DEPTH + 1), 4 * MAX_DEPTH + 1, "nested more than"),
        ("core == 1 and " * MAX_LENGTH, None, f"longer than {MAX_LENGTH}"),
    ],
)
def test_a_mistake_is_pointed_at(text, column, words):
    with pytest.raises(UsageError) as caught:
        parse_policy(text)
    message = str(caught.value)
    assert words in message
    if column is not None:
        assert f"column {column}:" in message
        _, shown, pointer = message.split("\n")
        assert shown == f"  {text.strip()}"
        assert pointer.index("^") == 2 + column - 1


@pytest.mark.parametrize("policy", PassPolicy)
def test_the_seven_names_are_no_expressions(policy):
    assert parse_policy(f" {policy} ") is policy


def test_an_expression_is_its_text_and_can_be_sent():
    policy = parse_policy("  core == 1\n and error >= 0.5 ")
    assert policy == "core == 1  and error >= 0.5"
    again = pickle.loads(pickle.dumps(policy))
    assert again == policy
    assert passes(again, counts(1, 0, 1, 0), counts(1, 0, 2, 0), False)
