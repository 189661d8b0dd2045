"""What counts as the same verdict."""

from __future__ import annotations

import pytest

from tests.stability.verdicts import differences, in_any_sandbox, steady


@pytest.mark.parametrize(
    ("expected", "found", "told"),
    [
        ({"test a": "passed, Core"}, {"test a": "passed, Core"}, []),
        ({"test a": "passed, Core"}, {"test a": "failed, Core"}, ["test a: passed, Core → failed, Core"]),
        ({"test a": "passed, Core"}, {}, ["test a: passed, Core → absent"]),
        ({}, {"test a": "passed, Core"}, ["test a: absent → passed, Core"]),
        ({"exit code": "0", "group Core": "1 of 1"}, {"group Core": "1 of 1", "exit code": "0"}, []),
    ],
)
def test_differences(expected, found, told):
    assert differences(expected, found) == told


def test_only_what_is_the_sandboxs_own_may_differ_between_sandboxes():
    verdict = {"digest environment": "1", "digest image": "2", "digest tests": "3", "exit code": "0"}
    assert in_any_sandbox(verdict) == {"digest tests": "3", "exit code": "0"}


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("<object at 0x7f0011223344>", "<object at 0x7f5566778899>", True),
        ("timed out after 2.01 seconds", "timed out after 2.5 seconds", True),
        ("open /tmp/pytest-1/a failed", "open /tmp/pytest-2/b failed", True),
        ("at 2026-01-01 10:00:00", "at 2026-01-01T11:00:00.5", True),
        ("http://127.0.0.1:40001/x", "http://127.0.0.1:40002/x", True),
        ("assert 3 == 4", "assert 3 == 5", False),
        ("exit status 2", "exit status 1", False),
    ],
)
def test_messages_are_compared_without_what_may_well_differ(one, other, equal):
    assert (steady(one) == steady(other)) is equal
