import pytest

from slop_code.evaluation.evidence import Evidence
from slop_code.evaluation.grading import MESSAGE_LIMIT, NOT_IN_ROSTER, grade
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.reports.raw_test import RawTest
from slop_code.evaluation.roster import Roster, RosterEntry

ROSTER = Roster(
    (
        RosterEntry("test_checkpoint_1.py::test_old", ("error",)),
        RosterEntry("test_checkpoint_2.py::TestX::test_y[a::b]", ("parametrize", "functionality")),
        RosterEntry("test_checkpoint_2.py::test_core", ()),
        RosterEntry("test_checkpoint_2.py::test_custom", ("slow",)),
    )
)


def graded(*tests, **more):
    missing = more.pop("missing", "left no result")
    evidence = Evidence(tests, "json-report", **more)
    return grade(
        ROSTER,
        evidence,
        ordered=["checkpoint_1", "checkpoint_2"],
        current="checkpoint_2",
        custom={"slow": GroupType.ERROR},
        missing=missing,
    )


def raw(nodeid, status="passed", **more):
    return RawTest(f"test_checkpoint_{nodeid}", status, 5.0, **more)


def test_every_test_of_the_roster_once_in_its_order():
    results = graded(raw("2.py::test_core"), raw("1.py::test_old"))
    assert [(result.file_path, result.id) for result in results] == [
        ("test_checkpoint_1.py", "test_old"),
        ("test_checkpoint_2.py", "TestX::test_y[a::b]"),
        ("test_checkpoint_2.py", "test_core"),
        ("test_checkpoint_2.py", "test_custom"),
    ]
    assert [result.status for result in results] == ["passed", "error", "passed", "error"]
    assert [result.checkpoint for result in results] == ["checkpoint_1"] + ["checkpoint_2"] * 3
    assert [result.group_type for result in results] == [
        GroupType.REGRESSION,
        GroupType.FUNCTIONALITY,
        GroupType.CORE,
        GroupType.ERROR,
    ]


def test_markers_of_a_report_are_not_believed():
    (_, _, core, _) = graded(raw("2.py::test_core", markers=("error", "functionality")))
    assert (core.markers, core.group_type) == ([], GroupType.CORE)


def test_no_result_is_an_error_with_a_reason():
    results = graded(missing="session timeout of 90 s", running="test_checkpoint_2.py::test_core")
    assert {result.status for result in results} == {"error"}
    assert [result.failure_message for result in results] == [
        "session timeout of 90 s",
        "session timeout of 90 s",
        "session timeout of 90 s (this test was running)",
        "session timeout of 90 s",
    ]


def test_deselected_tests_are_left_out_unless_they_ran():
    names = frozenset({"test_checkpoint_1.py::test_old", "test_checkpoint_2.py::test_core"})
    results = graded(raw("2.py::test_core"), deselected=names)
    assert [result.id for result in results] == ["TestX::test_y[a::b]", "test_core", "test_custom"]


def test_a_test_that_is_not_in_the_roster_never_passes():
    extra = graded(raw("2.py::test_planted"))[-1]
    assert (extra.id, extra.status, extra.failure_message) == ("test_planted", "error", NOT_IN_ROSTER)


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        ("passed", "chatter", None),
        ("failed", "a\x1b[2Jb\n\t", "a\\x1b[2Jb\n\t"),
        ("error", "\ud800\x00", "\\ud800\\x00"),
        ("skipped", "not today", "not today"),
        ("failed", None, None),
    ],
)
def test_messages(status, message, expected):
    (_, _, core, _) = graded(raw("2.py::test_core", status, message=message))
    assert (core.status, core.failure_message) == (status, expected)


@pytest.mark.parametrize("filler", ["x", "é", "\x1b", "\ud800"])
def test_messages_are_bounded(filler):
    (_, _, core, _) = graded(raw("2.py::test_core", "failed", message="HEAD" + filler * 100_000 + "TAIL"))
    assert len(core.failure_message.encode()) <= MESSAGE_LIMIT
    assert core.failure_message.startswith("HEAD")
    assert core.failure_message.endswith("TAIL")


@pytest.mark.parametrize(
    ("file_path", "checkpoint", "group"),
    [
        ("test_checkpoint_1.py", "checkpoint_1", GroupType.REGRESSION),
        ("test_checkpoint_2.py", "checkpoint_2", GroupType.CORE),
        ("sub/test_checkpoint_2_more.py", "checkpoint_2", GroupType.CORE),
        ("test_checkpoint_20.py", "checkpoint_20", GroupType.REGRESSION),
        ("test_helpers.py", "helpers", GroupType.REGRESSION),
    ],
)
def test_the_file_name_says_where_a_test_comes_from(file_path, checkpoint, group):
    (result,) = grade(
        Roster((RosterEntry(f"{file_path}::test_a", ()),)),
        Evidence((), "stream"),
        ordered=["checkpoint_1", "checkpoint_2"],
        current="checkpoint_2",
        custom={},
    )
    assert (result.checkpoint, result.group_type) == (checkpoint, group)
