from dataclasses import replace

import pytest

from slop_code.evaluation.infrastructure import collection_details, collection_failure, infrastructure_failure
from slop_code.evaluation.reports.raw_test import RawTest
from tests.evidence_records import evidence_of, roster_of

GOOD = RawTest("test_a.py::good", "passed", 1.0)
BAD = RawTest("test_a.py::bad", "failed", 1.0)
ERROR = RawTest("test_a.py::error", "error", 1.0)
SKIPPED = RawTest("test_a.py::skipped", "skipped", 1.0)
XPASSED = RawTest("test_a.py::xpassed", "failed", 1.0, xpassed=True)


def failure_reason(exit_code, *tests, expected=None, **more):
    names = [test.nodeid for test in tests] if expected is None else expected
    return infrastructure_failure(evidence_of(*tests, roster=roster_of(*names), exit_code=exit_code, **more))


@pytest.mark.parametrize("source", ["json-report", "ctrf"])
@pytest.mark.parametrize(
    ("exit_code", "tests"),
    [
        (0, [GOOD]),
        (0, [GOOD, SKIPPED]),
        (0, [SKIPPED]),
        (0, [GOOD, XPASSED]),
        (1, [GOOD, BAD]),
        (1, [ERROR]),
        (1, [BAD, XPASSED]),
    ],
)
def test_success_is_a_complete_report(exit_code, tests, source):
    assert failure_reason(exit_code, *tests, source=source, reported_exit=exit_code) is None


@pytest.mark.parametrize(
    ("exit_code", "words"),
    [
        (None, "session timeout of 90 s with no test running"),
        (2, "interrupted"),
        (3, "internal error"),
        (4, "refused its arguments"),
        (5, "no tests"),
        (6, "none of its exit codes"),
        (137, "killed by signal 9 (SIGKILL)"),
        (255, "none of its exit codes"),
        (-9, "killed by signal 9 (SIGKILL)"),
        (-11, "SIGSEGV"),
        (-100, "none of its exit codes"),
    ],
)
def test_other_exit_codes_are_infrastructure_failures(exit_code, words):
    assert words in failure_reason(exit_code, GOOD)


@pytest.mark.parametrize("exit_code", [0, 1, 2])
def test_collection_errors_are_named(exit_code):
    error = "test_a.py: ImportError while importing test module\nTraceback:\nE   No module named 'x'\x1b"
    reason = failure_reason(exit_code, GOOD, collection_errors=(error,) * 5)
    assert reason.startswith("collection failed: test_a.py: ImportError while importing test module No module")
    assert reason.endswith("and 2 more")
    assert "\x1b" not in reason


@pytest.mark.parametrize(
    ("exit_code", "tests", "more", "words"),
    [
        (0, [], {"expected": []}, "no tests were expected"),
        (0, [], {"expected": ["a", "b"]}, "2 of 2 tests left no result, the first: a"),
        (0, [GOOD], {"expected": [GOOD.nodeid, "x"]}, "1 of 2 tests left no result, the first: x"),
        (
            0,
            [GOOD, SKIPPED],
            {"expected": [GOOD.nodeid]},
            "not among the tests: 1, the first: test_a.py::skipped",
        ),
        (0, [GOOD, BAD], {}, "ended with 0 while its report has failures: 1"),
        (0, [GOOD, ERROR], {}, "ended with 0 while its report has failures: 1"),
        (1, [GOOD, SKIPPED], {}, "ended with 1 while no test failed"),
        (1, [XPASSED], {}, "ended with 1 while no test failed"),
        (1, [BAD], {"reported_exit": 0}, "announced exit code 0 and ended with 1"),
        (0, [GOOD], {"source": "stream"}, "no usable report"),
        (1, [BAD], {"source": "stream", "faults": ("is odd",)}, "ctrf-report.json is missing; stream.jsonl is odd"),
        (0, [GOOD], {"error": "the engine went away"}, "the engine went away"),
        (None, [GOOD], {"running": BAD.nodeid}, "session timeout of 90 s while running test_a.py::bad"),
        (137, [GOOD], {"running": BAD.nodeid}, "signal 9 (SIGKILL), while running test_a.py::bad"),
    ],
)
def test_an_incomplete_or_contradictory_report_is_a_failure(exit_code, tests, more, words):
    assert words in failure_reason(exit_code, *tests, **more)


def test_deselected_tests_are_not_expected():
    expected = [GOOD.nodeid, "test_a.py::left"]
    assert failure_reason(0, GOOD, expected=expected, deselected=frozenset({"test_a.py::left"})) is None
    assert failure_reason(0, expected=["x"], deselected=frozenset({"x"})) == "no tests were expected"


@pytest.mark.parametrize(
    ("exit_code", "memory_limit", "expected", "reason"),
    [
        (124, 1 << 30, [GOOD.nodeid, BAD.nodeid], None),
        (124, 1 << 30, [GOOD.nodeid], "the subject's box ended"),
        (124, None, [GOOD.nodeid, BAD.nodeid], "the subject's box ended"),
        (0, 1 << 30, [GOOD.nodeid, BAD.nodeid], "no usable report"),
    ],
)
def test_a_box_that_ended_for_its_memory_fails_the_tests_without_a_result(exit_code, memory_limit, expected, reason):
    evidence = evidence_of(GOOD, roster=roster_of(*expected), exit_code=exit_code, source="stream", finished=None)
    ended = evidence.exit.model_copy(update={"memory_limit": memory_limit})
    failure = infrastructure_failure(replace(evidence, exit=ended))
    assert failure is None if reason is None else reason in failure


SYNTAX = """test_a.py: /judge/_pytest/python.py:528: in importtestmodule
    mod = import_path(
E     File "/workspace/.evaluation_tests/test_a.py", line 53
E       def (
E           ^
E   SyntaxError: invalid syntax
"""
IMPORT = """test_a.py: ImportError while importing test module '/workspace/.evaluation_tests/test_a.py'.
Traceback:
.evaluation_tests/test_a.py:1: in <module>
    import help
.evaluation_tests/deep/help.py:7: in <module>
    import nope
E   ModuleNotFoundError: No module named 'nope'
"""


@pytest.mark.parametrize(
    ("error", "details"),
    [
        ("test_a.py: broken", "test_a.py: broken"),
        (SYNTAX, "\n".join(SYNTAX.splitlines()[2:])),
        (IMPORT, "\n".join(IMPORT.splitlines()[2:])),
        (
            IMPORT.replace("E   Mod", "/judge/pytest/assertion.py:1: in exec\n    exec(x)\nE   Mod"),
            "\n".join(IMPORT.splitlines()[2:]),
        ),
    ],
)
def test_details_of_a_collection_error_are_about_the_tests(error, details):
    assert collection_details([error]) == details


@pytest.mark.parametrize(
    ("exit_code", "errors", "words"),
    [
        (0, [], None),
        (2, ["test_a.py: broken"], "collection failed: test_a.py: broken"),
        (2, [SYNTAX], "collection failed: test_a.py:53: SyntaxError: invalid syntax"),
        (2, [IMPORT], "collection failed: deep/help.py:7: ModuleNotFoundError: No module named 'nope'"),
        (4, [], "refused its arguments"),
        (5, [], "no tests"),
    ],
)
def test_failures_of_collection_name_location_and_error(exit_code, errors, words):
    reason = collection_failure(exit_code, errors)
    assert (reason is None) is (words is None)
    assert (words or "") in (reason or "")


def test_without_our_plugin_there_is_no_verdict():
    """Whatever the other reports say: the import guard and the bounds are its work."""
    assert "did not run to its end" in failure_reason(0, GOOD, finished=None)


@pytest.mark.parametrize("fact", ["is missing", "is malformed: exit_code: Field required", "is of pair 2"])
def test_without_the_exit_status_there_is_no_verdict(fact):
    assert infrastructure_failure(replace(evidence_of(GOOD), exit=fact)) == f"exit.json {fact}"
