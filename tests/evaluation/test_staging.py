"""Failures of the collection of tests."""

from __future__ import annotations

import pytest

from slop_code.evaluation.result_files.evidence_files import STREAM
from slop_code.evaluation.staging import CollectionError


@pytest.mark.parametrize(
    ("exit_code", "pytest_started", "permanent"),
    [
        (2, True, True),
        (2, False, False),
        (1, False, False),
        (5, True, True),
        (4, False, True),
        (3, True, False),
        (-9, True, False),
        (None, False, False),
    ],
)
def test_a_failure_is_permanent_only_if_pytest_itself_ended(tmp_path, exit_code, pytest_started, permanent):
    """uvx ends with 1 or 2, too, such as for a full disk."""
    if pytest_started:
        (tmp_path / STREAM).write_text("")
    assert CollectionError("the reason", exit_code, tmp_path).permanent is permanent
