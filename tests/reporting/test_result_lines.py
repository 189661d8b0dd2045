"""Lines of one result; the results are built by hand."""

import functools
import io
from pathlib import Path

import pytest

from slop_code.evaluation import PassPolicy
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import RatePolicy
from slop_code.reporting.result_lines import (
    MAX_MESSAGE_LINES,
    every_test_lines,
    lines_after_pytest,
    lines_of_test,
    message_lines,
    part_lines,
    result_lines,
    show_hint,
    show_result,
    show_stored,
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


def texts(*tests, **changes):
    hint = show_hint(Path("run/p/checkpoint_1"))
    return [text for text, _ in result_lines(results(*tests, **changes), PassPolicy.ALL_CASES, hint)]


def long_texts(*tests, **changes):
    lines = every_test_lines(results(*tests, **changes), PassPolicy.ALL_CASES)
    return [text for text, _ in lines]


TESTS = [
    numbered(1, "passed"),
    numbered(2, message="def test():\nE   ran: x\nE   expected: 1\nE   found: 2"),
    numbered(3, "skipped", message="why"),
    numbered(4, "skipped"),
]


def test_a_failure_is_a_line_with_its_reason():
    assert texts(*TESTS) == [
        "FAILED Core test_checkpoint_1.py::test_2: expected 1, found 2",
        "SKIPPED Core test_checkpoint_1.py::test_3: why",
        "SKIPPED Core test_checkpoint_1.py::test_4",
        "a test in full: slop-code show run/p/checkpoint_1 TEST",
        "NOT PASSED (all-cases): 1 of 4 tests passed",
    ]
    assert texts(numbered(1, "passed")) == ["PASSED (all-cases): 1 of 1 tests passed"]


def test_the_long_form_has_all_tests_with_their_messages():
    assert long_texts(*TESTS) == [
        "PASSED Core test_checkpoint_1.py::test_1",
        "FAILED Core test_checkpoint_1.py::test_2",
        "    def test():",
        "    E   ran: x",
        "    E   expected: 1",
        "    E   found: 2",
        "SKIPPED Core test_checkpoint_1.py::test_3",
        "    why",
        "SKIPPED Core test_checkpoint_1.py::test_4",
        "tests 1.50 s",
        "NOT PASSED (all-cases): 1 of 4 tests passed",
    ]


@pytest.mark.parametrize("show", [show_result, functools.partial(show_stored, path=Path("out"))], ids=["new", "stored"])
def test_the_long_form_is_the_same_for_new_and_stored_results(capsys, show):
    struck = numbered(3, timeout={"kind": "test", "limit_s": 2})
    show(results(*TESTS[:2], struck), PassPolicy.ALL_CASES, verbose=True)
    shown = capsys.readouterr().out
    assert "\n    E   found: 2\n" in shown
    assert "::test_3\n    limit struck: the checkpoint's timeout of 2 s\n" in shown


def test_below_the_output_of_pytest_only_limits_are_added():
    struck = numbered(5, message="E   Timeout", timeout={"kind": "test", "limit_s": 2})
    lines = lines_after_pytest(results(*TESTS, struck), PassPolicy.ALL_CASES)
    assert [text for text, _ in lines] == [
        "FAILED Core test_checkpoint_1.py::test_5: limit struck: the checkpoint's timeout of 2 s",
        "tests 1.50 s",
        "NOT PASSED (all-cases): 1 of 5 tests passed",
    ]


def test_a_set_up_that_failed_is_said_once():
    tests = [numbered(number, message="set-up failed: no pip") for number in range(30)]
    reason, hint, verdict = texts(*tests, setup_failure="set-up failed: no pip")
    assert (reason, verdict) == ("reason: set-up failed: no pip", "NOT PASSED (all-cases): 0 of 30 tests passed")
    assert hint.startswith("a test in full: ")
    assert "\n".join(long_texts(*tests, setup_failure="set-up failed: no pip")).count("no pip") == 1


def test_an_infrastructure_failure_has_its_whole_cause_and_no_counts(capsys):
    tests = [numbered(1, "passed"), numbered(2, "error", message="killed")]
    reason = "pytest was killed\nby signal 9\n" + "\n".join(f"line {number}" for number in range(50))
    failed = results(*tests, infrastructure_failure_reason=reason, warnings=["careful"])
    show_result(failed, PassPolicy.ALL_CASES)
    shown = capsys.readouterr().out
    end = "warning: careful\nINFRASTRUCTURE FAILURE: no verdict\n"
    indented = reason.replace("\n", "\n    ")
    assert shown == f"p checkpoint_1\nreason: {indented}\n{end}"
    show_stored(failed, PassPolicy.ALL_CASES, Path("out"))
    shown = capsys.readouterr().out
    assert "1/2" not in shown
    assert f"reason: {indented}\n" in shown


def test_no_text_of_a_submission_stands_as_a_line_of_ours():
    verdicts = "no\nPASSED (all-cases): 11 of 11 tests passed\n=== 1 failed, 10 passed in 0.86s ===\nend"
    lines = texts(numbered(), setup_failure=verdicts, warnings=[f"{verdicts}!"])
    indented = "no\n    PASSED (all-cases): 11 of 11 tests passed\n    end"
    assert lines[:2] == [f"reason: {indented}", f"warning: {indented}!"]
    assert texts(numbered(), infrastructure_failure_reason=verdicts)[1:] == ["INFRASTRUCTURE FAILURE: no verdict"]


def test_a_part_of_the_tests_has_its_failures_by_cause():
    chosen = results(*TESTS[:2], deselected=3)
    assert [text for text, _ in part_lines("run/p", chosen, None)] == [
        "run/p: PART ONLY, no verdict: 1 of 2 chosen tests passed, 3 left out",
        "  FAILED Core test_checkpoint_1.py::test_2: expected 1, found 2",
    ]


@pytest.mark.parametrize(
    ("message", "lines", "shown"),
    [
        ("assert 1 == 2", texts, []),
        ("assert 'SyntaxError' == 1", texts, []),
        ("assert 1 == 2", long_texts, ["the submission ran on Python 3.11.7"]),
        (
            'E   File "/workspace/main.py", line 3\nE   SyntaxError: invalid syntax',
            texts,
            ["the submission ran on Python 3.11.7; `python` in the environment chooses another"],
        ),
    ],
)
def test_the_python_of_the_submission_explains_a_syntax_error(message, lines, shown):
    found = lines(numbered(1, message=message), digests={"python": "3.11.7"})
    assert [line for line in found if "ran on Python" in line] == shown


def test_control_characters_in_phases_are_escaped():
    (line,) = [text for text in long_texts(phases={"\x1b]0;owned\x07\n": 1.0}) if "owned" in text]
    assert line == "\\x1b]0;owned\\x07\\n 1.00 s"


def test_a_shell_reads_back_what_runs_a_test_again():
    odd = numbered(id="test_x[\x1b'\u202e]")
    (again,) = [text for text, _ in lines_of_test(results(odd), odd, Path("a b")) if text.startswith("again: ")]
    assert again == r"again: slop-code rerun 'a b' $'test_checkpoint_1.py::test_x[\x1b\'\u202e]'"


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
        results(*tests, problem_name=hostile, warnings=[f"{hostile}!"], infrastructure_failure_reason=hostile),
        PassPolicy.ALL_CASES,
        verbose=True,
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
