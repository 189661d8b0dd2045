"""Lines of one result; the results are built by hand."""

import io
from pathlib import Path

import pytest

from slop_code.evaluation import PassPolicy
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import RatePolicy
from slop_code.reporting.result_lines import (
    HEADLINE_WIDTH,
    MAX_FAILURES,
    MAX_LISTED_FAILURES,
    MAX_MESSAGE_LINES,
    lines_of_test,
    listed_lines,
    message_lines,
    result_lines,
    show_result,
    verdict,
)
from slop_code.reporting.text import printable
from tests.factories import case, result


def numbered(number=1, status="failed", message=None, **fields):
    return case(f"test_{number}", status, failure_message=message, **fields)


def results(*tests, **fields):
    return result(tests, **{"problem_name": "p", "pytest_exit_code": 1, "phases": {"tests": 1.5}, **fields})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 漢\n\tline", "plain ü 漢\n\tline"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\rb\x08c\x00", "a\\rb\\x08c\\x00"),
        ("\x9b2J\x7f", "\\x9b2J\\x7f"),
        ("\u202eabc\u2028\u200b", "\\u202eabc\\u2028\\u200b"),
        ("[bold]no markup[/bold]", "[bold]no markup[/bold]"),
    ],
)
def test_control_characters_are_printed_escaped(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("tests", "changes", "policy", "line"),
    [
        ([numbered(1, "passed")], {}, PassPolicy.ALL_CASES, "PASSED (all-cases): 1 of 1 tests passed"),
        (
            [numbered(1, "passed"), numbered(2)],
            {},
            PassPolicy.ALL_CASES,
            "NOT PASSED (all-cases): 1 of 2 tests passed",
        ),
        ([numbered(1, "passed"), numbered(2)], {}, PassPolicy.ANY, "PASSED (any): 1 of 2 tests passed"),
        (
            [numbered(1, "passed", group_type=GroupType.REGRESSION)],
            {},
            RatePolicy.ISOLATED,
            "NOT PASSED (isolated): no tests of this policy; 1 of 1 tests passed",
        ),
        ([], {}, PassPolicy.ANY, "NOT PASSED (any): 0 of 0 tests passed"),
        (
            [numbered(1, "passed")],
            {"infrastructure_failure_reason": "killed"},
            PassPolicy.ANY,
            "INFRASTRUCTURE FAILURE: no verdict",
        ),
    ],
)
def test_the_verdict_is_one_line(tests, changes, policy, line):
    assert verdict(results(*tests, **changes), policy)[0] == line


def texts(*tests, every=False, messages=True, **changes):
    lines = result_lines(results(*tests, **changes), PassPolicy.ALL_CASES, every=every, messages=messages)
    return [text for text, _ in lines]


def test_failures_are_listed_and_passes_only_with_every():
    tests = [numbered(1, "passed"), numbered(2, message="expected: 1\nfound: 2"), numbered(3, "skipped", message="why")]
    assert texts(*tests)[:-1] == [
        "FAILED Core test_checkpoint_1.py::test_2",
        "    expected: 1",
        "    found: 2",
        "SKIPPED Core test_checkpoint_1.py::test_3",
        "    why",
    ]
    assert "PASSED Core test_checkpoint_1.py::test_1" in texts(*tests, every=True)
    assert "    why" in texts(*tests, every=True)
    assert texts(*tests, messages=False)[:-1] == [
        "FAILED Core test_checkpoint_1.py::test_2",
        "SKIPPED Core test_checkpoint_1.py::test_3",
    ]


def listed_texts(*tests, every=False, path="run/p/checkpoint_1", **changes):
    lines = listed_lines(results(*tests, **changes), PassPolicy.ALL_CASES, Path(path), every=every)
    return [text for text, _ in lines]


def test_a_stored_result_has_a_line_for_each_test():
    long = "\n".join(["def test():", *map(str, range(500)), "E   ran: x", "E   assert 1 == 2", f"E   {'x' * 1000}"])
    tests = [numbered(1, "passed"), numbered(2, message=long), numbered(3, "skipped"), numbered(4, message="x" * 1000)]
    assert listed_texts(*tests) == [
        "FAILED Core test_checkpoint_1.py::test_2: assert 1 == 2",
        "SKIPPED Core test_checkpoint_1.py::test_3",
        f"FAILED Core test_checkpoint_1.py::test_4: {'x' * HEADLINE_WIDTH} [... {1000 - HEADLINE_WIDTH} characters]",
        "a test in full: slop-code show run/p/checkpoint_1 TEST",
        "NOT PASSED (all-cases): 1 of 4 tests passed",
    ]
    assert listed_texts(*tests, every=True)[0] == "PASSED Core test_checkpoint_1.py::test_1"
    assert listed_texts(numbered(1, "passed")) == ["PASSED (all-cases): 1 of 1 tests passed"]


def test_lines_of_a_stored_result_have_an_end():
    tests = [numbered(number) for number in range(MAX_LISTED_FAILURES + 3)]
    assert len(listed_texts(*tests)) == MAX_LISTED_FAILURES + 3
    assert "... and 3 more that did not pass; -v shows all" in listed_texts(*tests)
    assert len(listed_texts(*tests, every=True)) == MAX_LISTED_FAILURES + 6


@pytest.mark.parametrize(
    ("message", "every", "shown"),
    [
        ("assert 1 == 2", False, []),
        ("assert 1 == 2", True, ["the submission ran on Python 3.11.7"]),
        (
            "SyntaxError: invalid syntax",
            False,
            ["the submission ran on Python 3.11.7; `python` in the environment chooses another"],
        ),
    ],
)
def test_the_python_of_the_submission_explains_a_syntax_error(message, every, shown):
    failed = results(numbered(1, message=message), digests={"python": "3.11.7"})
    lines = [text for text, _ in result_lines(failed, PassPolicy.ALL_CASES, every=every)]
    assert [line for line in lines if "ran on Python" in line] == shown


@pytest.mark.parametrize("lines", [texts, listed_texts])
def test_control_characters_in_phases_are_escaped(lines):
    (line,) = [text for text in lines(every=True, phases={"\x1b]0;owned\x07\n": 1.0}) if "owned" in text]
    assert line == "\\x1b]0;owned\\x07\\n 1.00 s"


def test_a_shell_reads_back_what_runs_a_test_again():
    odd = numbered(id="test_x[\x1b'\u202e]")
    (again,) = [text for text, _ in lines_of_test(results(odd), odd, Path("a b")) if text.startswith("again: ")]
    assert again == r"again: slop-code rerun 'a b' $'test_checkpoint_1.py::test_x[\x1b\'\u202e]'"


def test_many_failures_are_counted():
    tests = [numbered(number) for number in range(MAX_FAILURES + 3)]
    assert "... and 3 more that did not pass; -v shows all" in texts(*tests)
    assert f"FAILED Core test_checkpoint_1.py::test_{MAX_FAILURES + 2}" in texts(*tests, every=True)


def test_a_long_message_keeps_its_end():
    message = "\n".join(map(str, range(MAX_MESSAGE_LINES + 5)))
    kept = message_lines(numbered(message=message))
    assert kept[0] == "[5 lines left out]"
    assert kept[-1] == str(MAX_MESSAGE_LINES + 4)
    assert len(kept) == MAX_MESSAGE_LINES + 1


def test_nothing_reaches_the_terminal_as_a_command(capsys):
    hostile = "\x1b]0;owned\x07[red]"
    tests = [numbered(id=f"test_x[{hostile}]", message=f"{hostile} and more")]
    show_result(
        results(*tests, problem_name=hostile, warnings=[hostile], infrastructure_failure_reason=hostile),
        PassPolicy.ALL_CASES,
        every=True,
    )
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert shown.count("\\x1b]0;owned\\x07[red]") == 5


def test_a_closed_pipe_raises_broken_pipe(monkeypatch):
    """What rich does instead is to end the process, with a status that would be taken for the verdict."""

    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Gone())
    with pytest.raises(BrokenPipeError):
        show_result(results(numbered()), PassPolicy.ALL_CASES)
