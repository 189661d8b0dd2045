"""Failures grouped by cause, and causes of whole checkpoints."""

import pytest

from slop_code.evaluation.problem.entry_file import no_entry_file
from slop_code.pytest_plugin.submission_calls import CompletedCall
from slop_code.reporting.failures.failure_causes import (
    REASON_WIDTH,
    checkpoint_cause,
    failure_causes,
    not_passed_tests,
    reason_of,
)
from tests.factories import case, result

SYNTAX = 'E   File "/workspace/main.py", line 3\nE   def f(:\nE   SyntaxError: invalid syntax'
SYNTAX_TEXT = "SyntaxError: invalid syntax in main.py line 3"
MEMORY = {"limits": [{"kind": "memory", "limit": 1 << 20, "call": "python main.py"}]}
MEMORY_TEXT = "limit struck: memory of 1 MiB"


def failed(number=1, message="E   assert 1 == 2", **fields):
    return case(f"test_{number}", "failed", failure_message=message, **fields)


def several(count, message="E   assert 1 == 2", start=0, **fields):
    return [failed(start + number, message, **fields) for number in range(count)]


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (failed(message="E   AssertionError: assert '' == '5'"), "assert '' == '5'"),
        (failed(message="E   Failed: no answer"), "no answer"),
        (failed(message="E   KeyError: 'a'"), "KeyError: 'a'"),
        (failed(message=SYNTAX), SYNTAX_TEXT),
        (failed(message=SYNTAX, **MEMORY), MEMORY_TEXT),
        (failed(message=None), "failed"),
        (case("test_a", "skipped"), "skipped"),
        (failed(message="E   no /tmp/pytest-of-agent/pytest-0/test_a0/file.txt"), "no file.txt"),
        (failed(message="E   no /workspace/.evaluation_tests/data/a.txt"), "no data/a.txt"),
        (failed(message="E   \x1b]0;x\x07[bold]"), "\\x1b]0;x\\x07[bold]"),
        (failed(message="E   a\u00adb\U000e0041"), "a\\xadb\\U000e0041"),
        (failed(message="E   " + "x" * 5000), "x" * REASON_WIDTH + f" [... {2000 - REASON_WIDTH} characters]"),
    ],
)
def test_the_reason_is_one_line(test, reason):
    assert reason_of(test) == reason


@pytest.mark.parametrize(
    ("returncode", "stdout", "stderr", "expected", "reason"),
    [
        (1, "", "note\nno title\n", {"stdout": "1\n"}, "exit status 1, no title"),
        (0, "1\n3\n", "", {"stdout": "1\n2\n"}, "expected 2, found 3"),
        (0, "1\n3\n" * 30, "", {"stdout": "1\n2\n" * 30}, "expected 2, found 3"),
        (0, "1 \n", "", {"stdout": "1\n"}, "expected '1', found '1 '"),
        (1, "", "no file\n", {"stderr": "no title\n", "code": 1}, "expected no title, found no file"),
        (0, "", "", {"code": 2}, "expected exit status 2, found exit status 0"),
    ],
)
def test_the_messages_of_our_own_fixtures_are_understood(returncode, stdout, stderr, expected, reason):
    with pytest.raises(pytest.fail.Exception) as failure:
        CompletedCall(["slop-run", "main.py"], returncode, stdout, stderr).expect(**expected)
    lines = f"Failed: {failure.value}".split("\n")
    assert reason_of(failed(message="\n".join(f"E       {line}" for line in lines))) == reason


def test_tests_with_the_same_cause_are_a_group():
    tests = [
        failed(1, "E   KeyError: 'a'"),
        failed(2, "E   no <object at 0xffff8bd154e0>"),
        failed(3, **MEMORY),
        case("test_4"),
        failed(5, "E   no <object at 0xffff8bd15999>"),
        failed(6, "E   assert 1 == 2", **MEMORY),
        failed(7, "E   no <object at 0xffff8bd15000>"),
    ]
    causes = failure_causes(not_passed_tests(result(tests)))
    assert [(cause.text, [test.id for test in cause.tests]) for cause in causes] == [
        ("no <object>", ["test_2", "test_5", "test_7"]),
        (MEMORY_TEXT, ["test_3", "test_6"]),
        ("KeyError: 'a'", ["test_1"]),
    ]


def test_values_in_hexadecimal_are_no_addresses():
    messages = [
        "E   expected: 0xdeadbeef\nE   found: 0xcafebabe",
        "E   expected: 0x12345678\nE   found: 0xffffffff",
        "E   segfault at 0x12345678",
        "E   segfault at 0xffffffff",
    ]
    tests = [failed(number, message) for number, message in enumerate(messages)]
    assert [cause.text for cause in failure_causes(tests)] == [
        "expected 0xdeadbeef, found 0xcafebabe",
        "expected 0x12345678, found 0xffffffff",
        "segfault at 0x12345678",
        "segfault at 0xffffffff",
    ]


def test_an_address_at_the_end_of_a_long_line_does_not_split_a_cause():
    text = "x" * (REASON_WIDTH - 12)
    tests = [failed(number, f"E   {text}<object at 0xffff8bd15{number}00>") for number in range(3)]
    assert [len(cause.tests) for cause in failure_causes(tests)] == [3]


@pytest.mark.parametrize(
    ("tests", "fields", "cause", "explained"),
    [
        ("+-", {}, None, 0),
        ("+-", {"infrastructure_failure_reason": "no\nspace", "setup_failure": "x"}, "no\nspace", 1),
        ("--", {"setup_failure": "set-up failed: a\nb"}, "set-up failed: a\nb", 2),
        ("+--", {"missing_entry_file": "main.py"}, no_entry_file("main.py"), 2),
        ("++--", {"missing_entry_file": "main.py"}, None, 0),  # the tests start something else
        ("+", {"missing_entry_file": "main.py"}, None, 0),
        ("---", {"warnings": [no_entry_file("main.py")]}, None, 0),
        (several(3, SYNTAX), {}, SYNTAX_TEXT, 3),
        ([*several(3, SYNTAX), failed(9)], {}, SYNTAX_TEXT, 3),
        ([*several(2, SYNTAX), *several(2, start=5)], {}, None, 0),
        ([failed(1, SYNTAX), *several(4, start=5, calls=["python main.py a"])], {}, None, 0),
        ([*several(3, SYNTAX), *several(2, start=5, calls=["python main.py a"])], {}, SYNTAX_TEXT, 3),
        ([*several(2, SYNTAX), *several(2, SYNTAX.replace("3", "4"), start=5), failed(9)], {}, None, 0),
        ([failed(1, SYNTAX), *(case(f"test_{number}") for number in range(5, 9))], {}, None, 0),
        (several(3, **MEMORY), {}, f"{MEMORY_TEXT}, in 3 of 3 tests that did not pass", 0),
        ([*several(2, **MEMORY), failed(9)], {}, f"{MEMORY_TEXT}, in 2 of 3 tests that did not pass", 0),
        ([*several(2, **MEMORY), *several(2, start=5)], {}, None, 0),
        ([failed(1, **MEMORY), case("test_b")], {}, None, 0),
        (
            several(2, timeout={"kind": "test", "limit_s": 10}),
            {},
            "limit struck: the checkpoint's timeout of 10 s, in 2 of 2 tests that did not pass",
            0,
        ),
    ],
)
def test_the_cause_of_a_checkpoint_follows_from_facts(tests, fields, cause, explained):
    results = result(tests, **fields)
    whole = checkpoint_cause(results)
    assert (whole and whole.text) == cause
    assert len(whole.explained if whole else ()) == explained
