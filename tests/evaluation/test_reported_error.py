"""Errors of the submission in failure messages, as pytest prints them."""

import pytest

from slop_code.evaluation.failures.error_lines import error_lines
from slop_code.evaluation.failures.reported_error import reported_error

NAME_ERROR = [
    "Traceback (most recent call last):",
    '  File "/workspace/main.py", line 1, in <module>',
    "    print(x)",
    "          ^",
    "NameError: name 'x' is not defined",
]
SYNTAX_ERROR = ['  File "/workspace/lib/store.py", line 3', "    def f(:", "          ^", "SyntaxError: invalid syntax"]
SYNTAX_TEXT = "SyntaxError: invalid syntax in store.py line 3"


def outcome(code, stdout=(), stderr=()):
    return [f"exit status {code}", "stdout:", *stdout, "stderr:", *stderr]


def compared(expected, found):
    lines = ["Failed: ran: x", "", *_headed("expected", expected), "", *_headed("found", found)]
    return "\n".join(f"E       {line}" for line in lines) + "\n\ntest_a.py:3: Failed"


def _headed(head, lines):
    return [f"{head}: {lines[0]}", *lines[1:]]


def process(code, stdout="", stderr="", attribute="returncode"):
    done = f"CompletedProcess(args=['slop-run', 'main.py'], returncode={code}, stdout={stdout!r}, stderr={stderr!r})"
    return f"E        +  where {code} = {done}.{attribute}"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        # the status differs: the last line on standard error
        (compared(outcome(0, ["1"]), outcome(1, [], ["note", "l: no title", ""])), "exit status 1, l: no title"),
        (compared(outcome(2, [], ["usage"]), outcome(1, [], ["no file"])), "exit status 1, no file"),
        (compared(outcome(0), outcome(1, [], NAME_ERROR)), "NameError: name 'x' is not defined"),
        (compared(outcome(0), outcome(1, [], [*NAME_ERROR[:-1], "Odd: x"])), "exit status 1, Odd: x"),
        (compared(outcome(0), outcome(1, [], [*NAME_ERROR, *NAME_ERROR[:-1], "KeyError"])), "KeyError"),
        (compared(outcome(0), outcome(1, [], SYNTAX_ERROR)), SYNTAX_TEXT),
        (compared(outcome(2), outcome(0, ["1"])), None),
        (compared(["it is ready"], ["it ended", "", "output:", "no port"]), "it ended, no port"),
        # the same status: only an exception in place of the standard error that was expected
        (compared(outcome(1, [], ["no title"]), outcome(1, [], NAME_ERROR)), "NameError: name 'x' is not defined"),
        (compared(outcome(1, [], ["no title"]), outcome(1, [], ["no file"])), None),
        (compared(outcome(0, ["1"]), outcome(0, ["2"], NAME_ERROR)), None),
        # a plain assertion about the result of subprocess.run
        ("E   assert 1 == 0\n" + process(1, stderr="a\nit's bad\n"), "exit status 1, it's bad"),
        ("E   assert 1 == 0\n" + process(1, stderr=b"a\nbad\n"), "exit status 1, bad"),
        ("E   assert 1 == 0\n" + process(1, stderr="\n".join(SYNTAX_ERROR)), SYNTAX_TEXT),
        ("E   assert 1 == 0\n" + process(1), "expected exit status 0, found exit status 1"),
        ("E   assert 1 == 0\n" + process(1, stderr=None), "expected exit status 0, found exit status 1"),
        ("E   Error: x\nE   assert 0 == 2\n" + process(0, stderr="a"), "expected exit status 2, found exit status 0"),
        ("E   assert 'a' in ''\n" + process(1, stderr="bad", attribute="stdout"), "exit status 1, bad"),
        ("E   assert 'a' in 'b'\n" + process(1, "b", "bad", attribute="stdout"), None),
        ("E   assert 'a' in ''\n" + process(0, stderr="bad", attribute="stdout"), None),
        ("E   assert 'a' in ''\nE    where CompletedProcess(args=", None),
        ("E   assert 'a' in ''\nE    where CompletedProcess(args=[], returncode=1, stdout=", None),
        # the submission's output as the message of an assertion
        ("E   AssertionError: failed:" + "\nE   ".join(SYNTAX_ERROR), SYNTAX_TEXT),
        ('E   File "main.py", line 3\nE   and no exception', None),
        ("E   assert 1 == 2", None),
        ("", None),
    ],
)  # fmt: skip
def test_the_error_of_the_submission(message, text):
    error = reported_error(error_lines(message))
    assert (error and error.text) == text


def test_a_syntax_error_has_the_name_of_its_file():
    assert reported_error(SYNTAX_ERROR).syntax_file == "store.py"
    assert reported_error(NAME_ERROR).syntax_file is None
