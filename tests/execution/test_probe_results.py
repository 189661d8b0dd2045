"""Failures of probes are repeated, successes are not."""

from __future__ import annotations

import pytest

from slop_code.execution.bubblewrap import probe_results
from slop_code.execution.bubblewrap.probe_results import ProbeResults


@pytest.mark.parametrize(
    ("answers", "believed_s", "expected"),
    [
        ([True, False], 0, [True, True]),
        ([False, True], 0, [False, True]),
        ([False, True], 1000, [False, False]),
        ([False, False], 0, [False, False]),
    ],
)
def test_only_a_failure_is_probed_again(monkeypatch, answers, believed_s, expected):
    monkeypatch.setattr(probe_results, "FAILURE_S", believed_s)
    results, remaining = ProbeResults(bool), iter(answers)
    assert [results.get("key", lambda: next(remaining)) for _ in expected] == expected


def test_keys_have_results_of_their_own():
    results = ProbeResults(bool)
    assert results.get("first", lambda: True)
    assert not results.get("second", lambda: False)


def test_what_is_cleared_is_probed_again():
    results = ProbeResults(bool)
    results.get("key", lambda: True)
    results.clear()
    assert not results.get("key", lambda: False)
