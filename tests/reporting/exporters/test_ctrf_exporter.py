"""CTRF: valid by its own schema."""

import json
from pathlib import Path

import jsonschema
import pytest

from slop_code.runs.scb.agent_facts import AgentFacts

SCHEMA = json.loads((Path(__file__).parents[2] / "data" / "schemas" / "ctrf-schema-0.0.json").read_text())
COUNTS = ("tests", "passed", "failed", "skipped", "pending", "other")


@pytest.fixture
def results(export):
    def read(*entries):
        raw = export("ctrf", *entries)
        assert raw.isascii()
        document = json.loads(raw)
        jsonschema.validate(document, SCHEMA)
        return document["results"]

    return read


def test_the_summary_is_that_of_the_tests(results, make_entry, make_test):
    tests = [make_test("a"), make_test("b", "failed"), make_test("c", "skipped"), make_test("d", "error")]
    report = results(make_entry(*tests), make_entry(make_test(), checkpoint="checkpoint_2"))
    assert [report["summary"][name] for name in COUNTS] == [5, 2, 2, 1, 0, 0]
    assert [test["rawStatus"] for test in report["tests"]] == ["passed", "failed", "skipped", "error", "passed"]
    assert (report["summary"]["suites"], report["summary"]["start"], report["summary"]["stop"]) == (2, 0, 6173)


def test_no_runs_make_a_document_too(results):
    assert results()["tests"] == []


def test_parametrised_tests_are_apart(results, make_entry, make_test):
    report = results(
        make_entry(make_test("test_a[1]"), make_test("test_a[2]"), make_test("test_a[1]", file_path="b.py"))
    )
    assert [test["name"] for test in report["tests"]] == ["test_a[1]", "test_a[2]", "test_a[1]"]
    assert len({test["testId"] for test in report["tests"]}) == 3


def test_a_test_keeps_its_id_in_another_run(results, make_entry, make_test):
    first, second = results(make_entry(make_test()), make_entry(make_test(), run="tuesday"))["tests"]
    assert first["testId"] == second["testId"] == "words/checkpoint_1/test_checkpoint_1.py::test_a"
    assert first["executionId"] != second["executionId"]


def test_a_test_has_its_suite_tags_labels_and_texts(results, make_entry, make_test):
    failed = make_test("b", "failed", failure_message="x\nE   no", calls=["ls"], output="1\n2")
    (test,) = results(make_entry(failed))["tests"]
    assert test["suite"] == ["monday", "words", "checkpoint_1", "test_checkpoint_1.py"]
    assert test["tags"] == ["Core", "slow", "parametrize"]
    assert test["labels"] == {
        "run": "monday", "problem": "words", "checkpoint": "checkpoint_1", "group": "Core", "home": "checkpoint_1",
    }  # fmt: skip
    assert (test["message"], test["trace"], test["stdout"]) == ("no", "x\nE   no", ["1", "2"])
    assert test["extra"] == {"calls": ["ls"]}


def test_without_a_verdict_no_test_has_passed(results, make_entry, make_test):
    report = results(make_entry(make_test("a"), reason="out of memory"), make_entry(gone="no snapshot"))
    assert [(test["name"], test["status"]) for test in report["tests"]] == [
        ("a", "other"),
        ("(checkpoint)", "other"),
        ("(checkpoint)", "other"),
    ]
    assert [report["summary"][name] for name in COUNTS] == [3, 0, 0, 0, 0, 3]
    assert [checkpoint["reason"] for checkpoint in report["extra"]["checkpoints"]] == ["out of memory", "no snapshot"]
    assert [checkpoint["passed"] for checkpoint in report["extra"]["checkpoints"]] == [False, False]


def test_hostile_text_stays_text(results, hostile):
    report = results(hostile)
    assert [test["status"] for test in report["tests"]] == ["failed", "failed", "skipped"]
    assert "\x1b" not in json.dumps(report, ensure_ascii=False)


def test_a_checkpoint_has_its_rates_and_the_cost_of_the_agent(results, make_entry, make_test):
    entry = make_entry(make_test(), make_test("b", "failed", group_type="Error"), agent=AgentFacts(cost=0.5, error="x"))
    first, second = results(entry, make_entry(gone="no snapshot"))["extra"]["checkpoints"]
    assert first["rates"] == {"strict": 0.5, "isolated": 0.5, "core": 1.0}
    assert first["agent"] == {"cost": 0.5, "steps": None, "input": None, "output": None}
    assert (second["rates"], second["agent"]) == (dict.fromkeys(("strict", "isolated", "core")), None)
