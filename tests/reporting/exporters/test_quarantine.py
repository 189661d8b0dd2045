"""Quarantined tests are reported in every format, and never as failures."""

from __future__ import annotations

import csv
import io
import json
from xml.etree import ElementTree

import pytest

from slop_code.comparison.load import ABSENT_CHECKPOINT, CheckpointRuns
from slop_code.evaluation.policy import PassPolicy
from slop_code.reporting.html.run_data import ProblemData, add_tests, checkpoint_data, problem_data
from slop_code.reporting.result_lines import result_lines
from slop_code.runs.checkpoint_lines import count_regressions, passed_by_test

APART = ["quarantined", "slow"]


@pytest.fixture
def entries(make_test, make_entry):
    """It passes at the first checkpoint and fails at the second."""
    return [
        make_entry(make_test(), make_test("test_b", status, markers=APART), checkpoint=f"checkpoint_{number}")
        for number, status in enumerate(("passed", "failed"), start=1)
    ]


def test_quarantined_tests_are_counted_on_the_terminal(entries):
    texts = [text for text, _ in result_lines(entries[1].results, PassPolicy.ALL_CASES)]
    assert texts == [
        "FAILED Core test_checkpoint_1.py::test_b (quarantined)",
        "quarantined, without effect on the verdict: 1 test, 1 did not pass",
        "PASSED (all-cases): 1 of 1 tests passed",
    ]


def test_quarantined_tests_are_skipped_in_junit(entries, export):
    suite = ElementTree.fromstring(export("junit", entries[1])).find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "0", "1")
    assert suite.find("testcase/skipped").get("type") == "quarantined"


def test_quarantined_tests_are_flaky_in_ctrf(entries, export):
    tests = json.loads(export("ctrf", entries[1]))["results"]["tests"]
    assert [(test["status"], test["rawStatus"], test.get("flaky")) for test in tests] == [
        ("passed", "passed", None),
        ("other", "failed", True),
    ]


def test_quarantined_tests_are_marked_in_csv(entries, export):
    rows = list(csv.DictReader(io.StringIO(export("csv", entries[1]).decode())))
    assert [(row["status"], row["quarantined"]) for row in rows] == [("passed", "false"), ("failed", "true")]


def test_quarantined_tests_are_left_out_of_markdown(entries, export):
    assert b"test_b" not in export("markdown", entries[1])


def test_it_is_no_regression(entries):
    earlier, later = [passed_by_test(entry.results) for entry in entries]
    assert count_regressions(earlier, later, since="checkpoint_1").introduced == 0
    problem = ProblemData("words")
    for entry in entries:
        problem.checkpoints.append(checkpoint_data(entry, None, [PassPolicy.ALL_CASES]))
        add_tests(problem, entry.results.tests)
    assert [test["changes"] for test in problem_data(problem)["tests"]] == ["n.", "n."]


def test_it_is_not_compared(entries):
    runs = CheckpointRuns("words", "checkpoint_2", 2, [ABSENT_CHECKPOINT])
    runs.add(0, entries[1], PassPolicy.ALL_CASES)
    assert [name for _, name in runs.tests] == ["test_a"]
