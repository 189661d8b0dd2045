"""Comparison of verdicts: equal, different, not earned."""

from __future__ import annotations

import pytest

from tests.factories import case, result
from tests.stability.soak import Account, exit_status, summary
from tests.stability.verdicts import differences, in_any_sandbox, steady, unearned


@pytest.mark.parametrize(
    ("expected", "found", "expected_messages"),
    [
        ({"test a": "passed, Core"}, {"test a": "passed, Core"}, []),
        ({"test a": "passed, Core"}, {"test a": "failed, Core"}, ["test a: passed, Core → failed, Core"]),
        ({"test a": "passed, Core"}, {}, ["test a: passed, Core → absent"]),
        ({}, {"test a": "passed, Core"}, ["test a: absent → passed, Core"]),
        ({"exit code": "0", "group Core": "1 of 1"}, {"group Core": "1 of 1", "exit code": "0"}, []),
    ],
)
def test_differences_between_evaluations_are_listed(expected, found, expected_messages):
    assert differences(expected, found) == expected_messages


def test_only_what_is_the_sandboxs_own_may_differ_between_sandboxes():
    verdict = {"digest environment": "1", "digest image": "2", "digest tests": "3", "exit code": "0"}
    assert in_any_sandbox(verdict) == {"digest tests": "3", "exit code": "0"}


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("<object at 0x7f0011223344>", "<object at 0x7f5566778899>", True),
        ("timed out after 2.01 seconds", "timed out after 2.5 seconds", True),
        ("open /tmp/pytest-1/a failed", "open /tmp/pytest-2/b failed", True),
        ("open /home/a/.cache/slop-code/sessions/1-x/w/a", "open /home/a/.cache/slop-code/sessions/2-y/w/a", True),
        ("open /home/a/.cache/slop-code/sessions/1-x/w/a", "open /home/a/.cache/slop-code/sessions/2-y/w/b", False),
        ("at 2026-01-01 10:00:00", "at 2026-01-01T11:00:00.5", True),
        ("http://127.0.0.1:40001/x", "http://127.0.0.1:40002/x", True),
        ("assert 3 == 4", "assert 3 == 5", False),
        ("exit status 2", "exit status 1", False),
    ],
)
def test_messages_are_compared_without_what_may_well_differ(one, other, equal):
    assert (steady(one) == steady(other)) is equal


def results(status="passed", environment="e", message=None, **fields):
    return result([case("test_a", status, failure_message=message)], digests={"environment": environment}, **fields)


def told_about(*evaluations, kind=""):
    """Each is a sandbox, a condition and its results."""
    account = Account()
    for sandbox, condition, evaluated in evaluations:
        account.add("case", sandbox, condition, evaluated, kind)
    return list(account.rows.values())


NOTHING = results(infrastructure_failure_reason="no bubblewrap works here")


@pytest.mark.parametrize(
    ("evaluations", "status", "words"),
    [
        ([results()] * 2, 0, "STABLE: 2 evaluations, every verdict equal, 0 tests repeated"),
        ([NOTHING] * 6, 3, "evaluation 6: no verdict: no bubblewrap works here"),
        ([NOTHING, results()], 3, "evaluation 1: no verdict: no bubblewrap works here"),
        ([results(), NOTHING], 3, "evaluation 2: no verdict: no bubblewrap works here"),
        ([NOTHING, results(), results("failed")], 1, "evaluation 3: test test_checkpoint_1.py::test_a: passed"),
    ],
    ids=["equal", "none at all", "none at first", "none at last", "another"],
)
def test_where_nothing_was_judged_nothing_is_stable(evaluations, status, words):
    rows = told_about(*[("none", "idle", result) for result in evaluations])
    assert exit_status(rows) == status
    assert summary(rows).startswith("NOT STABLE" if status else "STABLE")
    assert words in summary(rows)


@pytest.mark.parametrize(
    ("kind", "result", "expected_messages"),
    [
        ("reference", results(), []),
        ("reference", results("failed"), ["a reference does not pass all-cases"]),
        ("reference", results("skipped"), ["a reference does not pass all-cases"]),
        ("reference", results(deselected=1), ["a reference does not pass all-cases"]),
        ("empty", results("failed"), []),
        ("empty", results("error"), []),
        ("empty", results(), ["an empty submission passes 1 tests, such as test_checkpoint_1.py::test_a"]),
        ("before", results(), []),
        ("before", results("failed"), []),
    ],
)
def test_a_verdict_that_was_not_earned(kind, result, expected_messages):
    assert unearned(kind, result) == expected_messages
    rows = told_about(("none", "idle", result), ("none", "idle", result), kind=kind)
    assert [text.partition(": ")[2] for text in rows[0].differing] == expected_messages * 2
    assert exit_status(rows) == int(bool(expected_messages))


def test_the_sandboxes_are_held_against_each_other():
    rows = told_about(("none", "idle", results()), ("docker", "idle", results("failed", "other")))
    assert [len(row.differing) > 0 for row in rows] == [False, True]
    assert "evaluation 1: test test_checkpoint_1.py::test_a: passed, Core → failed, Core" in summary(rows)
    assert "digest environment" not in summary(rows)


@pytest.mark.parametrize(
    ("second", "expected_messages"),
    [
        (results(environment="other"), "digest environment: e → other"),
        (results(pytest_exit_code=1), "exit code: 0 → 1"),
        (results(infrastructure_failure_reason="killed"), "no verdict: killed"),
        (results(deselected=1), "deselected: 0 → 1"),
    ],
    ids=["digest", "exit code", "no verdict", "deselected"],
)
def test_under_load_it_has_to_be_the_verdict_of_the_idle_machine(second, expected_messages):
    rows = told_about(("none", "idle", results()), ("none", "load", second))
    assert f"evaluation 1: {expected_messages}" in rows[1].differing


def test_other_words_of_a_failure_are_a_note():
    rows = told_about(*[("none", "idle", results("failed", message=text)) for text in ("at 3", "at 4")])
    assert rows[0].differing == []
    assert rows[0].notes == {"message test_checkpoint_1.py::test_a"}
