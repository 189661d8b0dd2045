"""Test files in which pytest would find nothing."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("text", "may_have"),
    [
        ("", False),
        ("import pytest\n\n\ndef check_one(): ...\n\n\nclass Words: ...\n", False),
        ("def test_one(): ...", True),
        ("async def test_one(): ...", True),
        ("class TestWords:\n    def test_one(self): ...", True),
        ("if True:\n    def test_one(): ...", True),
        ("from unittest import TestCase\nclass Words(TestCase): ...", True),
        ("from shared import *", True),
        ("from shared import check as test_check", True),
        ("test_one = make()", True),
        ("globals()[name] = make()", True),
        ("vars()[name] = make()", True),
        ("locals()[name] = make()", True),
    ],
)
def test_a_test_file_in_which_nothing_is_a_test_is_reported(found, text, may_have):
    findings = found({"tests/test_checkpoint_1.py": text, "tests/shared.py": ""})
    assert (("tests-missing", "tests/test_checkpoint_1.py") not in findings) is may_have


def test_another_file_may_have_the_tests_of_a_checkpoint(found):
    assert found({"tests/test_checkpoint_1.py": "", "tests/test_checkpoint_1_more.py": "def test_one(): ..."}) == []
