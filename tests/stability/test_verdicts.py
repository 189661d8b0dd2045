"""What counts as the same verdict."""

from __future__ import annotations

import pytest

from slop_code.evaluation import CorrectnessResults
from tests.stability.soak import Account, summary
from tests.stability.verdicts import differences, in_any_sandbox, steady


@pytest.mark.parametrize(
    ("expected", "found", "told"),
    [
        ({"test a": "passed, Core"}, {"test a": "passed, Core"}, []),
        ({"test a": "passed, Core"}, {"test a": "failed, Core"}, ["test a: passed, Core → failed, Core"]),
        ({"test a": "passed, Core"}, {}, ["test a: passed, Core → absent"]),
        ({}, {"test a": "passed, Core"}, ["test a: absent → passed, Core"]),
        ({"exit code": "0", "group Core": "1 of 1"}, {"group Core": "1 of 1", "exit code": "0"}, []),
    ],
)
def test_differences(expected, found, told):
    assert differences(expected, found) == told


def test_only_what_is_the_sandboxs_own_may_differ_between_sandboxes():
    verdict = {"digest environment": "1", "digest image": "2", "digest tests": "3", "exit code": "0"}
    assert in_any_sandbox(verdict) == {"digest tests": "3", "exit code": "0"}


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("<object at 0x7f0011223344>", "<object at 0x7f5566778899>", True),
        ("timed out after 2.01 seconds", "timed out after 2.5 seconds", True),
        ("open /tmp/pytest-1/a failed", "open /tmp/pytest-2/b failed", True),
        ("at 2026-01-01 10:00:00", "at 2026-01-01T11:00:00.5", True),
        ("http://127.0.0.1:40001/x", "http://127.0.0.1:40002/x", True),
        ("assert 3 == 4", "assert 3 == 5", False),
        ("exit status 2", "exit status 1", False),
    ],
)
def test_messages_are_compared_without_what_may_well_differ(one, other, equal):
    assert (steady(one) == steady(other)) is equal


def results(status="passed", environment="e", message=None, **more):
    test = {
        "id": "test_a",
        "checkpoint": "checkpoint_1",
        "group_type": "Core",
        "status": status,
        "duration_ms": 1.0,
        "file_path": "test_checkpoint_1.py",
        "markers": [],
        "failure_message": message,
    }
    provenance = {
        "digests": {"config": "c", "environment": environment},
        "test_dependencies": {},
        "python": "3",
        "platform": "Linux",
        "slop_code": "0",
        "command": [],
        "pytest_args": [],
    }
    fields = {"problem_name": "p", "checkpoint_name": "checkpoint_1", "duration": 1.0, "isolation": {}, "phases": {}}
    code = {"tests": [test], "pytest_exit_code": 0, "provenance": provenance, "evidence": "json-report"}
    return CorrectnessResults.model_validate({**fields, **code, **more})


def told_about(*evaluations):
    """Each is a sandbox, a condition and its results."""
    account = Account()
    for sandbox, condition, result in evaluations:
        account.add("case", sandbox, condition, result)
    return list(account.rows.values())


def test_the_sandboxes_are_held_against_each_other():
    rows = told_about(("none", "idle", results()), ("docker", "idle", results("failed", "other")))
    assert [len(row.differing) > 0 for row in rows] == [False, True]
    assert "evaluation 1: test test_checkpoint_1.py::test_a: passed, Core → failed, Core" in summary(rows)
    assert "digest environment" not in summary(rows)


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (results(environment="other"), "digest environment: e → other"),
        (results(pytest_exit_code=1), "exit code: 0 → 1"),
        (results(infrastructure_failure_reason="killed"), "infrastructure failure: none → killed"),
        (results(deselected=1), "deselected: 0 → 1"),
    ],
    ids=["digest", "exit code", "no verdict", "deselected"],
)
def test_under_load_it_has_to_be_the_verdict_of_the_idle_machine(second, told):
    rows = told_about(("none", "idle", results()), ("none", "load", second))
    assert f"evaluation 1: {told}" in rows[1].differing


def test_other_words_of_a_failure_are_a_note():
    rows = told_about(*[("none", "idle", results("failed", message=text)) for text in ("at 3", "at 4")])
    assert rows[0].differing == []
    assert rows[0].notes == {"message test_checkpoint_1.py::test_a"}
