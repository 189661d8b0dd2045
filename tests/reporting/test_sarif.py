"""Findings of a check as SARIF: valid by the official schema, and as another program reads them."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from sarif_pydantic import Sarif

from slop_code.authoring.check.findings import Finding, Location, Severity, StepOutcome
from slop_code.authoring.check.steps import CheckReport, StepReport, step
from slop_code.reporting.sarif import fingerprint, sarif

SCHEMA = json.loads((Path(__file__).parents[1] / "data/schemas/sarif-2.1.0.json").read_text())
RULE, OTHER = step("reference").rules[:2]
FINDING = Finding(
    RULE,
    Location("tests/test_checkpoint_1.py", 4),
    "test_a[\x1b[31m] fails",
    checkpoint="checkpoint_1",
    test="test_checkpoint_1.py::test_a",
)


def report(folder, *findings, allowed=(), **undone):
    found = StepReport("reference", StepOutcome(tuple(findings)), 1.5, allowed=tuple(allowed), **undone)
    return CheckReport("shout", folder, "local", (found,))


def written(*reports, status=1, folder=Path("/somewhere")):
    """As it is in the file."""
    text = json.dumps(sarif(reports, status, folder))
    document = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(document)
    [run] = document["runs"]
    return run, Sarif.model_validate_json(text)


def test_findings_have_rule_level_and_location():
    note = Finding(OTHER, Location("config.yaml"), "odd", own_severity=Severity.NOTE)
    run, read = written(report(Path("/somewhere/problems/sh out"), FINDING, note))
    assert [(result.rule_id, str(result.level.value)) for result in read.runs[0].results] == [
        (RULE.id, "error"),
        (OTHER.id, "note"),
    ]
    first, second = run["results"]
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "problems/sh%20out/tests/test_checkpoint_1.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 4},
    }
    assert first["message"]["text"] == f"test_a[\\x1b[31m] fails\n{RULE.fix}"
    assert "region" not in second["locations"][0]["physicalLocation"]
    assert [run["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] for one in run["results"]] == [RULE.id, OTHER.id]
    assert run["invocations"][0] == {
        "executionSuccessful": True,
        "exitCode": 1,
        "workingDirectory": {"uri": "file:///somewhere/"},
        "toolExecutionNotifications": [],
    }


def test_every_rule_of_the_steps_has_help():
    run, _ = written(report(Path("/somewhere")))
    rules = {rule["id"]: rule["help"]["text"] for rule in run["tool"]["driver"]["rules"]}
    assert rules == {rule.id: rule.fix for rule in step("reference").rules}


def test_what_lies_elsewhere_is_absolute():
    run, _ = written(report(Path("/elsewhere"), FINDING))
    [result] = run["results"]
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "file:///elsewhere/tests/test_checkpoint_1.py"}


def test_what_is_allowed_is_suppressed():
    run, _ = written(report(Path("/somewhere"), allowed=[FINDING]))
    assert run["results"][0]["suppressions"] == [{"kind": "inSource"}]


@pytest.mark.parametrize("why", ["broken", "blocked"])
def test_a_step_that_was_not_done(why):
    run, _ = written(report(Path("/somewhere"), **{why: "no\x1b sandbox"}), status=3)
    [invocation] = run["invocations"]
    assert not invocation["executionSuccessful"]
    [notification] = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"] == "shout: the step reference could not be done: no\\x1b sandbox"


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"location": Location("tests/test_checkpoint_1.py", 90)}, True),
        ({"message": "it took 2 s"}, True),
        ({"detail": "more"}, True),
        ({"rule": OTHER}, False),
        ({"test": "test_checkpoint_1.py::test_b"}, False),
        ({"checkpoint": "checkpoint_2"}, False),
    ],
    ids=["line", "message", "detail", "rule", "test", "checkpoint"],
)
def test_the_fingerprint_ignores_what_may_move(change, same):
    assert (fingerprint(replace(FINDING, **change), "shout") == fingerprint(FINDING, "shout")) is same
    without = replace(FINDING, test=None)
    assert fingerprint(without, "shout") != fingerprint(replace(without, message="other"), "shout")
