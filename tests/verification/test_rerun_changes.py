"""Differences between two results, and their meaning."""

import pytest

from slop_code.verification.rerun_changes import RerunChanges, rerun_changes
from tests import factories

FILE = "test_checkpoint_1.py"


def stored_result(tests="+-", digests=None, made=None, **fields):
    versions = {"test_dependencies": {"pytest": "9.0", "attrs": "25"}, "python": "3.12", **(made or {})}
    own = {"submission": "a", "tests": "b", "config": "c", "environment": "d", **(digests or {})}
    return factories.result(tests, digests=own, provenance=versions, **{"duration": 2.0, **fields})


def shown(tests):
    return [(one.test.removeprefix(f"{FILE}::"), one.old, one.new) for one in tests]


@pytest.mark.parametrize(
    ("old", "new", "statuses", "added", "removed"),
    [
        ("+-", "+-", [], [], []),
        ("+-", "++", [("test_1", "failed", "passed")], [], []),
        ("+-", "s-", [("test_0", "passed", "skipped")], [], []),
        ("+", "+-", [], [("test_1", None, "failed")], []),
        ("+-", "+", [], [], [("test_1", "failed", None)]),
    ],
)
def test_changed_tests_are_listed(old, new, statuses, added, removed):
    found = rerun_changes(stored_result(old), stored_result(new))
    assert (shown(found.statuses), shown(found.added), shown(found.removed)) == (statuses, added, removed)
    assert found.differ == bool(statuses or added or removed)
    assert found.flaky == bool(statuses)


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"digests": {"submission": "x"}}, "submission"),
        ({"digests": {"tests": "x"}}, "tests"),
        ({"digests": {"config": "x"}}, "config"),
        ({"digests": {"environment": "x"}}, "environment"),
        ({"digests": {"image": "x"}}, "image"),
        ({"digests": {"python": "3.13.0"}}, "python"),
        ({"made": {"evaluation_version": "2"}}, "evaluation_version"),
        ({"made": {"python": "3.13"}}, "python"),
        ({"made": {"platform": "mac"}}, "platform"),
        ({"made": {"slop_code": "0.2.0"}}, "slop_code"),
        ({"made": {"test_dependencies": {"pytest": "9.1", "attrs": "25"}}}, "package pytest"),
        ({"made": {"test_dependencies": {"pytest": "9.0"}}}, "package attrs"),
    ],
)
def test_a_changed_input_explains_other_statuses(keys, what):
    found = rerun_changes(stored_result("+-"), stored_result("++", **keys))
    assert [one.what for one in (*found.digests, *found.versions)] == [what]
    assert all(one.meaning for one in found.digests)
    assert found.differ
    assert not found.flaky  # there is another reason
    assert not rerun_changes(stored_result("+-"), stored_result("+-", **keys)).differ


def test_changed_verdicts_are_listed_by_policy():
    found = rerun_changes(stored_result("+-"), stored_result("++"))
    assert {(one.what, one.old, one.new) for one in found.verdicts} == {
        (policy, "not passed", "passed")
        for policy in ("all-cases", "all-non-error-cases", "core-cases", "all-core-cases")
    }


@pytest.mark.parametrize(
    ("old", "new", "differ"), [(None, "x", True), ("x", None, True), ("x", "x", False), ("x", "y", False)]
)
def test_only_a_new_or_lost_infrastructure_failure_differs(old, new, differ):
    found = rerun_changes(
        stored_result("-", infrastructure_failure_reason=old), stored_result("-", infrastructure_failure_reason=new)
    )
    assert (found.reasons, found.differ, found.flaky) == ((old, new), differ, False)


BROKEN = {
    "digests": {"submission": None, "tests": None, "environment": "x"},
    "made": {"test_dependencies": {}, "python": "3.13", "evaluation_version": ""},
    "infrastructure_failure_reason": "no space",
}


def test_without_a_verdict_now_nothing_is_compared():
    found = rerun_changes(stored_result("+-"), stored_result("-", **BROKEN))
    assert found == RerunChanges((None, "no space"), [], [], [], [], [], [], [], [])
    assert found.same_inputs is None


def test_what_an_evaluation_that_broke_off_did_not_say_is_no_change():
    found = rerun_changes(stored_result("-", **BROKEN), stored_result("+-"))
    assert shown(found.statuses) == [("test_0", "failed", "passed")]
    assert (found.added, found.verdicts) == ([], [])
    assert [one.what for one in (*found.digests, *found.versions)] == ["environment", "python"]
    assert (found.differ, found.flaky, found.same_inputs) == (True, False, False)


def with_message(text):
    it = stored_result("-")
    return it.model_copy(update={"tests": [it.tests[0].model_copy(update={"failure_message": text})]})


@pytest.mark.parametrize(
    ("old", "new", "other"),
    [
        ("x", "x", False),
        ("x", "y", True),
        (None, "y", True),
        ("<f at 0xffffb4d39f80>", "<f at 0xffff98798fe0>", False),
        ("expected 0x10", "expected 0x11", True),
    ],
)
def test_changed_messages_are_listed_and_are_no_difference(old, new, other):
    found = rerun_changes(with_message(old), with_message(new))
    assert [one.test for one in found.messages] == ([f"{FILE}::test_0"] if other else [])
    assert not found.differ


def test_times_never_count_and_the_largest_changes_come_first():
    old, new = stored_result("+" * 8), stored_result("+" * 8, duration=3.0, phases={"tests": 2.5})
    tests = [test.model_copy(update={"duration_ms": 1.0 + number}) for number, test in enumerate(new.tests)]
    found = rerun_changes(old, new.model_copy(update={"tests": tests}))
    assert [(one.what, one.old, one.new) for one in found.times[:3]] == [
        ("everything", 2.0, 3.0),
        ("tests", 1.0, 2.5),
        (f"{FILE}::test_7", 0.001, 0.008),
    ]
    assert len(found.times) == 7
    assert not found.differ


@pytest.mark.parametrize(("mark", "statuses"), [("+", []), ("-", [("test_0", "passed", "failed")])])
def test_one_test_alone_is_compared_with_itself(mark, statuses):
    old = stored_result("+-")
    found = rerun_changes(old, stored_result(mark, deselected=1), old.tests[0])
    assert shown(found.statuses) == statuses
    assert (found.removed, found.verdicts, found.differ) == ([], [], bool(statuses))
    assert [one.what for one in found.times] == [f"{FILE}::test_0"]
