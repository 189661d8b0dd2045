"""Problems with odd imports: forked judges leave the same evidence as cold ones, or there is a reason against them."""

import pytest

from tests.evaluation.odd_imports import odd_problem
from tests.template_client import JudgeFolder

pytestmark = pytest.mark.e2e
SEEDS_OF_A_CASE = 4


def compare(folder, imported, seed):
    """The answer of the collected template."""
    folder.files = odd_problem(seed)
    cold = folder.cold()
    assert folder.forked(imported).comparable == cold.comparable, f"imported, seed {seed}"
    with folder.collected() as template:
        if "ready" in template.answer:
            for _ in range(2):
                assert folder.forked(template).comparable == cold.comparable, f"collected, seed {seed}"
        return template.answer


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 40, SEEDS_OF_A_CASE))
def test_judges_of_every_kind_leave_the_same_evidence_of_odd_problems(tmp_path, first):
    folder = JudgeFolder(tmp_path, {})
    with folder.imported() as imported:
        for seed in range(first, first + SEEDS_OF_A_CASE):
            compare(folder, imported, seed)


def test_odd_problems_are_the_same_for_a_seed_and_of_both_kinds():
    assert odd_problem(3) == odd_problem(3) != odd_problem(4)
