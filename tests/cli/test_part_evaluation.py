"""Checkpoints of which a selection leaves out every test."""

from __future__ import annotations

import pytest

from slop_code.cli.eval.part_evaluation import PartResult
from tests.factories import result

WORDS = "the pytest arguments select none of the tests"


@pytest.mark.parametrize(
    ("results", "reason", "empty"),
    [
        (result("", deselected=3, infrastructure_failure_reason="in other words"), None, True),
        (result("", deselected=0, infrastructure_failure_reason=WORDS), None, False),
        (result("-", deselected=3, infrastructure_failure_reason=WORDS), None, False),
        (result("+", deselected=3), None, False),
        (None, None, True),
        (None, "the snapshot is missing", False),
    ],
)
def test_a_checkpoint_is_empty_by_its_tests_and_not_by_the_words_of_a_reason(results, reason, empty):
    assert PartResult("run/words/checkpoint_1", results, reason).empty is empty
