"""JUnit XML: valid by Jenkins' schema, and as a reader of such files takes it."""

import importlib
from pathlib import Path
from xml.etree import ElementTree

import junitparser
import pytest

from slop_code.evaluation.report import TestResult
from slop_code.reporting.exporters.junit_exporter import split_id
from slop_code.runs.scb.agent_facts import AgentFacts

pytestmark = pytest.mark.e2e
SCHEMA = Path(__file__).parents[2] / "data" / "schemas" / "junit-10.xsd"


@pytest.fixture(scope="module")
def schema():
    """What reads it takes long to load."""
    return importlib.import_module("xmlschema").XMLSchema(SCHEMA)


@pytest.fixture
def suites(export, schema, tmp_path):
    """What junitparser reads of a document that the schema has accepted."""

    def read(*entries):
        text = export("junit", *entries).decode("utf-8")
        schema.validate(ElementTree.fromstring(text))
        return list(junitparser.JUnitXml.fromstring(text.encode()))

    return read


def outcomes(suite):
    return {case.name: [(type(one).__name__, one.type) for one in case.result] for case in suite}


def test_each_checkpoint_is_a_suite(suites, make_entry, make_test):
    tests = [make_test("a"), make_test("b", "failed"), make_test("c", "skipped"), make_test("d", "error")]
    first, second = suites(make_entry(*tests), make_entry(make_test(), checkpoint="checkpoint_2"))
    assert (first.name, second.name) == ("monday/words/checkpoint_1", "monday/words/checkpoint_2")
    assert (first.tests, first.failures, first.errors, first.skipped) == (4, 1, 1, 1)
    assert first.time == 4.938
    assert outcomes(first) == {
        "a": [],
        "b": [("Failure", "failed")],
        "c": [("Skipped", "skipped")],
        "d": [("Error", "error")],
    }
    assert (second.tests, second.failures, second.errors, second.skipped) == (1, 0, 0, 0)


def test_a_test_that_did_not_pass_says_why_and_what_it_ran(suites, make_entry, make_test):
    message = "def test_x():\n>   assert f() == 1\nE   assert 2 == 1\n\nfile.py:1: AssertionError"
    (suite,) = suites(make_entry(make_test(status="failed", failure_message=message, calls=["ls 'a b'"], output="hm")))
    (case,) = suite
    assert case.result[0].message == "assert 2 == 1"
    assert case.result[0].text == f"{message}\nran: ls 'a b'"
    assert case.system_out == "hm"
    assert case.time == 1.235


def test_the_suite_says_where_it_came_from(suites, make_entry, make_test):
    (suite,) = suites(make_entry(make_test(), agent=AgentFacts(cost=1.25)))
    assert {one.name: one.value for one in suite.properties()} == {
        "run": "monday", "problem": "words", "checkpoint": "checkpoint_1", "order": "1", "state": "evaluated",
        "policy": "all-cases", "passed": "true", "submission_digest": "5ub", "tests_digest": "7e5",
        "config_digest": "c0f", "environment_digest": "e0v", "evaluation_version": "1-abc", "slop_code": "0.1.0",
        "strict_rate": "1", "isolated_rate": "1", "core_rate": "1", "agent_cost": "1.25",
    }  # fmt: skip


def test_without_a_verdict_no_test_has_passed(suites, make_entry, make_test):
    (suite,) = suites(make_entry(make_test("a"), make_test("b", "failed"), reason="out of memory"))
    assert outcomes(suite) == {
        "a": [("Skipped", "infrastructure_failure")],
        "b": [("Skipped", "infrastructure_failure")],
        "(checkpoint)": [("Error", "infrastructure_failure")],
    }
    assert (suite.tests, suite.errors, suite.skipped) == (3, 1, 2)
    assert "out of memory" in [case.result[0].message for case in suite][2]


def test_a_checkpoint_without_a_result_is_an_error(suites, make_entry):
    (suite,) = suites(make_entry(gone="no snapshot"))
    assert outcomes(suite) == {"(checkpoint)": [("Error", "not_evaluated")]}
    assert [case.result[0].text for case in suite] == ["no snapshot"]


def test_hostile_text_stays_text(suites, hostile):
    (suite,) = suites(hostile)
    assert [len(case.result) for case in suite] == [1, 1, 1]
    text = suite.tostring().decode()
    for escape in ("\\x1b]0;owned\\x07", "\\ufffe", "\\x9b31m", "\\x0d"):
        assert escape in text


def test_equal_tests_of_two_runs_have_different_names(suites, make_entry, make_test):
    found = suites(make_entry(make_test()), make_entry(make_test(), run="tuesday"))
    assert len({(case.classname, case.name) for suite in found for case in suite}) == 2


@pytest.mark.parametrize(
    ("file", "name", "expected"),
    [
        ("test_a.py", "test_x", ("test_a", "test_x")),
        ("in/test_a.py", "TestB::TestC::test_x[1]", ("in.test_a.TestB.TestC", "test_x[1]")),
        ("test_a.py", "test_x[a::b[c]]", ("test_a", "test_x[a::b[c]]")),
    ],
)
def test_an_id_is_split_into_class_and_name(make_test, file, name, expected):
    assert split_id(TestResult(**make_test(name, file_path=file))) == expected
