"""Lines about failures: their number, their width, and what a submission can put into them."""

import pytest
from rich.cells import cell_len

from slop_code.evaluation import PassPolicy
from slop_code.evaluation.context import EvaluationContext
from slop_code.evaluation.provenance import warnings_for
from slop_code.execution.cache import Cache
from slop_code.reporting.failures.failure_causes import checkpoint_cause
from slop_code.reporting.failures.failure_lines import MAX_LINES, cause_lines, failure_lines, failure_summary
from slop_code.reporting.result_lines import show_result, show_stored
from slop_code.reporting.text import printable
from tests.factories import LOCAL, case, problem, result

HOSTILE = "\x1b]0;owned\x07\x9b31m[bold]\r\u202e"
CONTROL = set("\x1b\x07\x9b\r\u202e")


def failed(name, message="E   KeyError: 'a'", **fields):
    return case(str(name), "failed", failure_message=message, **fields)


def texts(tests, width=None, **fields):
    results = result(tests, **fields)
    return [text for text, _ in failure_lines(results, checkpoint_cause(results), width, "; -v shows all")]


def same(count, reason, start=0):
    return [failed(f"test_{reason}_{start + number}", f"E   {reason}") for number in range(count)]


def test_the_tests_of_a_cause_are_below_it():
    assert texts([case("test_p"), *same(1, "one"), *same(2, "two")]) == [
        "2 tests: two",
        "    FAILED Core test_checkpoint_1.py::test_two_0",
        "    FAILED Core test_checkpoint_1.py::test_two_1",
        "FAILED Core test_checkpoint_1.py::test_one_0: one",
    ]


@pytest.mark.parametrize(
    ("tests", "heads", "last"),
    [
        (same(19, "a"), ["19 tests: a"], "    FAILED Core test_checkpoint_1.py::test_a_18"),
        (same(20, "a"), ["20 tests: a"], "... and 2 more that did not pass; -v shows all"),
        (same(12, "a") + same(6, "b"), ["12 tests: a", "6 tests: b"], "    FAILED Core test_checkpoint_1.py::test_b_5"),
        (same(12, "a") + same(7, "b"), ["12 tests: a", "7 tests: b"], "... and 2 more that did not pass; -v shows all"),
        (same(90, "a") + same(1, "b"), ["90 tests: a", "FAILED Core test_checkpoint_1.py::test_b_0: b"],
         "... and 73 more that did not pass; -v shows all"),
    ],
)  # fmt: skip
def test_there_are_at_most_twenty_lines(tests, heads, last):
    lines = texts(tests)
    assert len(lines) == MAX_LINES
    assert [line for line in lines if not line.startswith((" ", "..."))] == heads
    assert lines[-1] == last


def test_a_cause_of_each_test():
    tests = [failed(f"test_{number}", f"E   KeyError: {number}") for number in range(MAX_LINES)]
    assert len(texts(tests)) == MAX_LINES
    lines = texts([*tests, failed("test_x", "E   x")])
    assert len(lines) == MAX_LINES
    assert lines[-1] == "... and 2 more that did not pass; -v shows all"


def test_only_a_terminal_cuts_lines_and_the_reason_stays():
    name = f"test_{'n' * 80}[case]"
    tests = [
        failed(name, "E   expected: 1\nE   found: 2"),
        failed("test_漢", "E   " + "漢" * 100),
        failed("test_b", "E   b"),
    ]
    assert texts(tests)[0] == f"FAILED Core test_checkpoint_1.py::{name}: expected 1, found 2"
    cut = texts(tests, 80)
    assert cut[0] == f"core   test_{'n' * 44}...: expected 1, found 2"
    assert cut[2] == "core   test_b: b"
    assert texts([case("test_e", "error", group_type="Regression")], 80) == ["regr.  ERROR test_e"]
    assert [cell_len(line) <= 80 for line in cut] == [True] * 3
    assert max(map(cell_len, texts([*tests, *same(3, "r" * 90)], 30))) <= 30


def test_a_quarantined_test_is_named_so():
    (line,) = texts([failed("test_a", markers=["quarantined"])])
    assert line == "FAILED Core test_checkpoint_1.py::test_a (quarantined): KeyError: 'a'"


def causes(tests, **fields):
    results = result(tests, **fields)
    return [text for text, _ in cause_lines(results, checkpoint_cause(results))]


@pytest.mark.parametrize("name", ["main.py", "a\u202e;b.py"], ids=["plain", "escaped"])
def test_a_missing_entry_file_is_said_once(tmp_path, name):
    """Before the other warnings where it is the cause, else with them."""
    config = problem(entry_file=name)
    context = EvaluationContext(config, config.checkpoint("1"), LOCAL, Cache(tmp_path))
    missing = context.missing_entry_file(tmp_path)
    (warning,) = warnings_for(context, tmp_path, None, None, None)
    text = printable(warning)
    assert text.startswith("the submission has no ")
    stored = {"missing_entry_file": missing, "warnings": ["first", warning]}
    assert causes("--", **stored) == [f"reason: {text}", "warning: first"]
    assert causes("+-", **stored) == ["warning: first", f"warning: {text}"]
    assert causes("--", missing_entry_file=missing) == [f"reason: {text}"]


def test_a_syntax_error_is_one_line_beside_the_other_failures():
    error = 'E   File "/workspace/main.py", line 3\nE   SyntaxError: invalid syntax'
    tests = [failed(f"test_{number}", error) for number in range(26)]
    text = "SyntaxError: invalid syntax in main.py line 3"
    assert [*causes(tests), *texts(tests)] == [f"reason: {text}"]
    tests = [*tests, failed("test_x")]
    assert [*causes(tests), *texts(tests)] == [
        f"reason: {text} (26 of 27 tests that did not pass)",
        "FAILED Core test_checkpoint_1.py::test_x: KeyError: 'a'",
    ]


def test_one_line_about_a_checkpoint():
    assert (
        failure_summary(result([*same(3, "a"), *same(2, "b"), *same(1, "c")])) == "3 tests: a; 2 tests: b; and 1 more"
    )
    assert failure_summary(result(same(2, "a"))) == "2 tests: a"
    assert failure_summary(result("--", setup_failure="no pip\nline 2")) == "no pip"


@pytest.mark.parametrize("verbose", [False, True])
def test_text_of_a_submission_is_neither_markup_nor_a_control_sequence(capsys, verbose):
    stderr = f"E   expected: exit status 0\nE   found: exit status 1\nE   stderr:\nE   {HOSTILE} no title"
    tests = [
        failed(f"test_a[{HOSTILE}]", stderr),
        failed(f"test_b[{HOSTILE}]", stderr),
        failed(f"test_c[{HOSTILE}]", f"E   {HOSTILE}"),
        failed("test_d", f'E   File "/workspace/{HOSTILE}", line 3\nE   SyntaxError: {HOSTILE}'),
    ]
    hostile = result(tests, missing_entry_file=HOSTILE, warnings=[HOSTILE])
    show_result(hostile, PassPolicy.ALL_CASES, verbose=verbose)
    show_stored(hostile, PassPolicy.ALL_CASES, "out", verbose=verbose)
    show_result(hostile.model_copy(update={"missing_entry_file": None}), PassPolicy.ALL_CASES, verbose=verbose)
    shown = capsys.readouterr().out
    assert not set(shown) & CONTROL
    assert shown.count("[bold]") >= 6


@pytest.mark.e2e
@pytest.mark.parametrize(
    "message",
    [
        "E   " + "x" * (50 << 20),
        "E   expected: 1\nE   found: 2\n" + "E   stderr:\n" * (1 << 20),
        'E   File "' * (1 << 20),
        'E   File "a", line 1\n' * (1 << 18) + "E   " + "a.b" * (1 << 20),
        "E   where CompletedProcess(args=" + ", returncode=1, stdout=''" * (1 << 18) + ", stderr='" * (1 << 18),
        "E   " + "/tmp/pytest-of-" * (1 << 20),
        "E   " + "0x" + "a" * (1 << 22),
    ],
    ids=["characters", "sections", "quotes", "frames", "processes", "folders", "addresses"],
)
def test_a_huge_message_gives_a_short_line(message):
    (line,) = texts([failed("test_a", message), case("test_b")])
    assert len(line) < 300


@pytest.mark.e2e
def test_many_causes_give_few_lines():
    tests = [failed(f"test_{number}", f"E   KeyError: {number}") for number in range(10_000)]
    lines = texts(tests)
    assert len(lines) == MAX_LINES
    assert lines[-1] == "... and 9981 more that did not pass; -v shows all"
