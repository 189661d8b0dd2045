"""Tests under quarantine run and are reported, and decide nothing."""

from __future__ import annotations

import json

import pytest

from slop_code.errors import ConfigError
from slop_code.evaluation import CorrectnessResults
from slop_code.evaluation.problem.quarantine import (
    Quarantine,
    QuarantinedTest,
    line_in_quarantine,
    quarantine_path,
    read_quarantine,
)
from slop_code.verification.stored_document import read_document
from slop_code.verification.verify import verify

TESTS = """
    import pytest

    def test_sound(run):
        assert run().stdout == "hello\\n"

    @pytest.mark.parametrize("number", [1, 2])
    def test_shaky(number):
        assert number == 3

    @pytest.mark.quarantined
    class TestStory:
        def test_a(self):
            assert False
"""


@pytest.mark.parametrize(
    ("entry", "nodeid", "covered"),
    [
        ("a.py::test_x", "a.py::test_x", True),
        ("a.py::test_x", "a.py::test_x[1]", True),
        ("a.py::test_x", "a.py::test_xy", False),
        ("a.py::test_x[1]", "a.py::test_x[1]", True),
        ("a.py::test_x[1]", "a.py::test_x[10]", False),
        ("a.py::test_x[1]", "a.py::test_x", False),
        ("a.py::TestA", "a.py::TestA::test_x[1]", True),
        ("a.py::TestA", "a.py::TestAB::test_x", False),
        ("deep/a.py::test_x", "a.py::test_x", False),
    ],
)
def test_what_an_entry_covers(entry, nodeid, covered):
    assert Quarantine(tests=(QuarantinedTest(test=entry),)).covers(nodeid) is covered


def test_a_quarantine_loads_back(tmp_path, make_problem):
    problem = make_problem({"test_checkpoint_1.py": TESTS})
    assert read_quarantine(problem) == Quarantine()
    assert line_in_quarantine(problem, "a.py::test_x[é]") is None
    quarantine = Quarantine(tests=(QuarantinedTest(test="a.py::test_x[é]", reason="“odd”"),))
    quarantine.save(quarantine_path(problem))
    assert read_quarantine(problem) == quarantine
    assert line_in_quarantine(problem, "a.py::test_x[é]") == 5
    assert line_in_quarantine(problem, "a.py::test_x") is None


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("{", "Invalid JSON"),
        ('{"tests": [{"test": "no id"}]}', "tests.0.test: String should match"),
        ('{"tests": [], "more": 1}', "more: an unknown key"),
        ('{"schema_version": 2}', "schema_version: Input should be 1"),
    ],
)
def test_a_quarantine_that_cannot_be_read(make_problem, text, fact):
    problem = make_problem({"test_checkpoint_1.py": TESTS}, files={"tests/flaky.json": text})
    with pytest.raises(ConfigError, match=r"flaky\.json: ") as caught:
        read_quarantine(problem)
    assert fact in str(caught.value)


@pytest.fixture
def evaluated(make_problem, make_submission, evaluate, tmp_path):
    """`evaluated(names)`: the result of a problem with these under quarantine, stored and verified."""

    def run(*names, **config):
        quarantine = json.dumps({"tests": [{"test": f"test_checkpoint_1.py::{name}"} for name in names]})
        problem = make_problem({"test_checkpoint_1.py": TESTS}, config=config, files={"tests/flaky.json": quarantine})
        submission = make_submission({"main.py": "print('hello')"})
        results = evaluate(problem, submission, output_dir=tmp_path)
        results.save(tmp_path / "evaluation.json")
        for given in (None, problem):
            assert verify(tmp_path, read_document(tmp_path / "evaluation.json"), given).findings == []
        return results

    return run


def test_quarantined_tests_do_not_count(evaluated, tmp_path):
    results = evaluated("test_shaky", "TestStory")
    assert results.infrastructure_failure_reason is None
    assert [(test.id, test.status, test.quarantined) for test in results.tests] == [
        ("test_sound", "passed", False),
        ("test_shaky[1]", "failed", True),
        ("test_shaky[2]", "failed", True),
        ("TestStory::test_a", "failed", True),
    ]
    assert results.passed["all-cases"]
    assert (results.pass_counts["Core"], results.total_counts["Core"]) == (1, 1)
    assert CorrectnessResults.load(tmp_path / "evaluation.json") == results


def test_one_set_of_parameters_alone_and_no_test_that_only_marks_itself(evaluated):
    results = evaluated("test_shaky[1]", parallel=2, parallel_by="test")
    assert [test.id for test in results.tests if test.quarantined] == ["test_shaky[1]"]
    assert (results.pass_counts["Core"], results.total_counts["Core"]) == (1, 3)
    assert not results.passed["all-cases"]


def test_a_result_that_puts_a_test_under_quarantine_by_itself_is_found_out(evaluated, tmp_path):
    evaluated("TestStory")
    path = tmp_path / "evaluation.json"
    data = json.loads(path.read_text())
    for test in data["tests"]:
        if test["status"] == "failed":
            test["markers"] = ["quarantined"]
    data["total_counts"]["Core"] = 1
    data["passed"] = dict.fromkeys(data["passed"], True)
    path.write_text(json.dumps(data))
    found = verify(tmp_path, read_document(path)).findings
    assert {one.kind for one in found} >= {"markers", "total_counts", "passed"}

    roster = tmp_path / ".scbench" / "roster.json"
    listed = json.loads(roster.read_text())
    for test in listed["tests"]:
        if "test_shaky" in test["nodeid"] or "TestStory" in test["nodeid"]:
            test["markers"] = ["quarantined"]
    roster.write_text(json.dumps(listed))
    found = verify(tmp_path, read_document(path)).findings
    assert [one.location for one in found] == [f"test_checkpoint_1.py::test_shaky[{number}]" for number in (1, 2)]
    assert {one.raw for one in found} == {"marked parametrize in .scbench/stream.jsonl"}


def test_all_of_them_is_no_pass(evaluated):
    results = evaluated("test_sound", "test_shaky", "TestStory")
    assert not any(results.passed.values())
