"""Deadlines of the environment: each is honoured, and named when it strikes."""

from __future__ import annotations

import pytest

HANGS = "import signal\n\ndef test_hangs():\n    signal.pause()\n"
CONFTEST_HANGS = {"conftest.py": "import signal\nsignal.pause()\n", "test_checkpoint_1.py": "def test_a(): pass\n"}


@pytest.mark.parametrize(
    ("tests", "timeouts", "reason"),
    [
        (CONFTEST_HANGS, {"collection": 1}, "collecting the tests did not end within the 1 s of timeouts.collection"),
        ({"test_checkpoint_1.py": HANGS}, {"session": 1}, "session timeout of 1 s"),
        (
            {"test_checkpoint_1.py": HANGS},
            {"evaluation": 1.5},
            "the evaluation did not end within the 1.5 s of timeouts.evaluation",
        ),
    ],
    ids=["collection", "session", "evaluation"],
)
def test_a_deadline_that_strikes_is_named(make_problem, make_submission, evaluate, tests, timeouts, reason):
    results = evaluate(make_problem(tests), make_submission({}), environment={"timeouts": timeouts})
    assert results.infrastructure_failure_reason.startswith(reason)
    assert not results.permanent_failure


def test_the_environment_sets_the_limit_of_a_test(make_problem, make_submission, evaluate):
    tests = {"test_checkpoint_1.py": HANGS}
    results = evaluate(make_problem(tests), make_submission({}), environment={"timeouts": {"test": 1}})
    (test,) = results.tests
    assert (results.infrastructure_failure_reason, test.status) == (None, "failed")
    assert "Timeout (>1.0s)" in test.failure_message
    assert "--timeout=1" in results.provenance.command
