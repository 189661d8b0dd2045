"""Scores for Inspect: records by problem and run."""

from __future__ import annotations

import io
import json
import math

from slop_code.evaluation.policy import PassPolicy
from slop_code.evaluation.reward_values import REWARD_NAMES
from slop_code.reporting.exporters import exporter


def exported(*entries):
    out = io.BytesIO()
    exporter("inspect")(iter(entries), out, PassPolicy.ANY)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_record_has_the_means_over_the_checkpoints_of_a_problem(make_entry, make_test):
    good, bad = make_test(), make_test("test_b", "failed", failure_message="E   AssertionError: expected 1")
    [record] = exported(make_entry(good), make_entry(good, bad, checkpoint="checkpoint_2"))
    assert (record["id"], record["epoch"]) == ("words", 1)
    assert list(record["value"]) == list(REWARD_NAMES)
    assert (record["value"]["strict"], record["value"]["core_rate"]) == (0.5, 0.75)
    assert math.isnan(record["value"]["error_rate"])
    assert "checkpoint_2: 1 of 2 tests passed\n- " in record["explanation"]
    assert record["metadata"]["checkpoint_1"]["rewards"] == dict.fromkeys(
        ("strict", "isolated", "core", "pass_rate", "core_rate"), 1
    )


def test_runs_are_epochs_and_a_problem_without_a_verdict_has_no_record(make_entry, make_test):
    test = make_test()
    entries = [
        make_entry(test, run="monday", reason="the disk is full"),
        make_entry(test, run="monday", problem="zebra"),
        make_entry(test, run="tuesday"),
        make_entry(run="tuesday", checkpoint="checkpoint_2", problem="zebra", gone="no snapshot"),
    ]
    assert [(record["id"], record["epoch"]) for record in exported(*entries)] == [("zebra", 1), ("words", 2)]
