"""Judges, templates and boxes that are killed at random take no verdict with them and leave nothing."""

import pytest

from slop_code import EvaluatorOutcome, EvaluatorRequest
from tests.factories import result
from tests.stability.kills import PROBLEM, Account, campaign, report

REQUEST = EvaluatorRequest({"main.py": b""}, PROBLEM, 1)


@pytest.mark.long
@pytest.mark.e2e
def test_evaluations_whose_processes_are_killed_have_their_verdicts_or_none(need_bubblewrap, cache, monkeypatch):
    need_bubblewrap()
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(cache.root))
    account = campaign(10, 1, lambda _: None, pause_s=0.5)
    assert account.faults == [], report(account)
    assert account.outcomes["verdict"]
    assert account.killed


@pytest.mark.parametrize(
    ("kind", "results", "counted", "faults"),
    [
        ("good", result("+"), "verdict", 0),
        ("wrong", result({"test_adds": "failed"}), "verdict", 0),
        ("wrong", result("+"), "wrong", 1),
        ("good", result("-"), "wrong", 1),
        ("good", None, "wrong", 1),
        ("good", result([], infrastructure_failure_reason="killed"), "infrastructure failure", 0),
    ],
)
def test_a_verdict_that_was_not_earned_is_a_fault(kind, results, counted, faults):
    account = Account()
    account.add(kind, EvaluatorOutcome(0, REQUEST, results))
    assert dict(account.outcomes) == {counted: 1}
    assert len(account.faults) == faults
