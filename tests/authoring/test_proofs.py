"""Proofs for `parallel: auto` from the runs of a reference, and the file that keeps them."""

from __future__ import annotations

import pytest

from slop_code.authoring.check.stability.conditions import AS_IS, Condition, ConditionKind, ReferenceRun
from slop_code.authoring.check.stability.proofs import proof_facts, proof_lines, save_proofs
from slop_code.authoring.check.stability.stability_rules import ObservedRuns
from slop_code.evaluation import ProblemConfig
from slop_code.evaluation.parallel.parallel_proof import ParallelProofs, proof_digest, proofs_path, read_proofs
from slop_code.evaluation.problem.quarantine import Quarantine, QuarantinedTest

TEST, OTHER = "test_checkpoint_1.py::test_a", "test_checkpoint_1.py::test_b"
INPUTS = ("tests", "config")
ORDER = Condition(ConditionKind.ORDER, seed=0)
BUSY = Condition(ConditionKind.BUSY)
PARALLEL = Condition(ConditionKind.PARALLEL, pairs=2)
NOTHING = Quarantine()
KNOWN = Quarantine(tests=(QuarantinedTest(test=TEST),))
PROVEN = {"proof": "p" * 64, "reason": None, "refuted": False}
REFUTED = {"proof": None, "reason": "1 of 2 tests flip", "refuted": True}
UNKNOWN = {"proof": None, "reason": "not tried in parallel", "refuted": False}


def ran(condition, passed=True, inputs=INPUTS, **keys):
    return ReferenceRun(condition, {TEST: passed, OTHER: True}, inputs=inputs, **keys)


LOST = ReferenceRun(PARALLEL, {}, lost="killed")


@pytest.mark.parametrize(
    ("runs", "quarantine", "reason", "refuted"),
    [
        ([ran(AS_IS), ran(ORDER), ran(PARALLEL)], NOTHING, None, False),
        ([ran(AS_IS), ran(ORDER), ran(BUSY), ran(PARALLEL), ran(PARALLEL)], NOTHING, None, False),
        ([ran(AS_IS), ran(ORDER), ran(PARALLEL, False)], NOTHING, "1 of 2 tests flip", True),
        ([ran(AS_IS), ran(ORDER, False), ran(PARALLEL)], NOTHING, "1 of 2 tests flip", True),
        ([ran(AS_IS), ran(ORDER), ran(BUSY, False), ran(PARALLEL)], NOTHING, "1 of 2 tests flip", True),
        ([ran(AS_IS), ran(ORDER), ran(PARALLEL, False)], KNOWN, None, False),
        ([ran(AS_IS), ran(ORDER), ran(PARALLEL), LOST], NOTHING, "there was no verdict in parallel, 2 pairs", True),
        ([ran(AS_IS), ran(ORDER)], NOTHING, "not tried in parallel", False),
        ([ran(AS_IS), ran(PARALLEL)], NOTHING, "not tried in another order", False),
        (
            [ran(AS_IS), ran(ORDER), ran(PARALLEL, inputs=("other", "config"))],
            NOTHING,
            "the tests changed during the check",
            False,
        ),
        (
            [ran(AS_IS, inputs=None), ran(ORDER, inputs=None), ran(PARALLEL, inputs=None)],
            NOTHING,
            "the tests changed during the check",
            False,
        ),
        ([ran(AS_IS), ran(ORDER), ran(PARALLEL), ran(ORDER, alone=TEST)], NOTHING, None, False),
    ],
)
def test_equal_results_in_any_order_and_in_parallel_are_a_proof(bench, runs, quarantine, reason, refuted):
    observed = ObservedRuns(bench().checkpoints[0], tuple(runs))
    facts = proof_facts(observed, quarantine, "test")
    assert (facts["reason"], facts["refuted"]) == (reason, refuted)
    assert facts["proof"] == (None if reason else proof_digest("tests", "config", "test"))


@pytest.mark.parametrize(
    ("before", "facts", "after"),
    [
        ({}, {"checkpoint_1": PROVEN}, {"checkpoint_1": "p" * 64}),
        ({"checkpoint_1": "old"}, {"checkpoint_1": PROVEN}, {"checkpoint_1": "p" * 64}),
        ({"checkpoint_1": "old"}, {"checkpoint_1": REFUTED}, {}),
        ({"checkpoint_1": "old"}, {"checkpoint_1": UNKNOWN}, None),
        ({"checkpoint_1": "p" * 64}, {"checkpoint_1": PROVEN}, None),
        ({}, {"checkpoint_1": REFUTED}, None),
        ({"gone": "old"}, {"checkpoint_1": PROVEN}, {"checkpoint_1": "p" * 64}),
        ({"checkpoint_1": "old"}, {}, None),
    ],
    ids=["first", "newer", "refuted", "not tried", "the same", "none", "gone", "not checked"],
)
def test_proofs_of_checked_checkpoints_are_replaced(authored, before, facts, after):
    """None: the file stays as it is, or there is none."""
    problem = ProblemConfig.from_yaml(authored())
    if before:
        ParallelProofs(checkpoints=before).save(proofs_path(problem))
    assert save_proofs(problem, facts) == (None if after is None else proofs_path(problem))
    assert read_proofs(problem).checkpoints == (before if after is None else after)


def test_the_author_is_told_what_is_proven_and_why_not():
    assert list(proof_lines({"checkpoint_1": PROVEN, "checkpoint_2": UNKNOWN})) == [
        "checkpoint_1: its tests may run in parallel",
        "checkpoint_2: no proof for parallel: not tried in parallel",
    ]
