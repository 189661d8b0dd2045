from dataclasses import replace

import pytest

from slop_code.evaluation.grading import MESSAGE_LIMIT, NOT_IN_ROSTER, GradingRules, grade
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.reports.raw_test import RawTest
from slop_code.evaluation.roster import Roster, RosterEntry
from tests.evidence_records import evidence_of, roster_of

ROSTER = Roster(
    (
        RosterEntry("test_checkpoint_1.py::test_old", ("error",)),
        RosterEntry("test_checkpoint_2.py::TestX::test_y[a::b]", ("parametrize", "functionality")),
        RosterEntry("test_checkpoint_2.py::test_core", ()),
        RosterEntry("test_checkpoint_2.py::test_custom", ("slow",)),
    )
)


RULES = GradingRules.with_markers(["checkpoint_1", "checkpoint_2"], "checkpoint_2", {"slow": GroupType.ERROR})
WITH_ARGUMENTS = replace(RULES, pytest_args=["-k", "x"])


def graded(*tests, **more):
    return grade([evidence_of(*tests, roster=ROSTER, **more)], ROSTER, WITH_ARGUMENTS).tests


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
    running = "test_checkpoint_2.py::test_core"
    results = graded(exit_code=None, running=running)
    assert {result.status for result in results} == {"error"}
    reason = f"session timeout of 90 s while running {running}"
    assert [result.failure_message for result in results] == [
        reason,
        reason,
        f"{reason} (this test was running)",
        reason,
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
def test_only_tests_that_did_not_pass_have_a_message(status, message, expected):
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
    roster = roster_of(f"{file_path}::test_a")
    (result,) = grade([evidence_of(roster=roster)], roster, RULES).tests
    assert (result.checkpoint, result.group_type) == (checkpoint, group)


def pair(*own, code=0, **more):
    return evidence_of(roster=roster_of(*own), exit_code=code, **more)


def together(pairs, pytest_args=("-k", "x")):
    names = dict.fromkeys(nodeid for pair in pairs for nodeid in sorted(pair.roster.nodeids))
    return grade(pairs, roster_of(*names), replace(RULES, pytest_args=pytest_args))


GOOD, GOOD_TOO = (evidence_of(RawTest(name, "passed", 1.0)) for name in ("a::1", "b::1"))
BAD_TOO = evidence_of(RawTest("b::1", "failed", 1.0), exit_code=1)
EMPTY = pair("a::1", code=5, log="collected 3", deselected=["a::1", "b::1"])
EMPTY_TOO = pair("b::1", code=5, log="collected 4", deselected=["a::1", "b::1"])
HUNG, HUNG_TOO = (pair(name, code=None) for name in ("a::1", "b::1"))
TIMEOUT = "session timeout of 90 s with no test running"
NO_TESTS = "the pytest arguments select none of the tests"
KILLED_TOO = pair("b::1", code=137)


@pytest.mark.parametrize(
    ("pairs", "code"),
    [
        ([GOOD], 0),
        ([GOOD, BAD_TOO], 1),
        ([BAD_TOO, GOOD], 1),
        ([BAD_TOO, pair("a::1", code=3)], 3),
        ([HUNG, KILLED_TOO], -1),
        ([EMPTY, GOOD_TOO], 0),
        ([EMPTY, BAD_TOO], 1),
        ([EMPTY, EMPTY_TOO], 5),
        ([pair("a::1", code=5), GOOD_TOO], 5),
    ],
)
def test_the_exit_code_of_several_pairs_is_that_of_one_pytest(pairs, code):
    assert together(pairs).exit_code == code


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([GOOD, BAD_TOO], None),
        ([HUNG], TIMEOUT),
        ([replace(HUNG, log=" last words\n")], f"{TIMEOUT}\nlast words"),
        ([GOOD, HUNG_TOO], f"pair 2 of 2: {TIMEOUT}"),
        ([HUNG, KILLED_TOO], f"pair 1 of 2: {TIMEOUT}\npair 2 of 2: pytest was killed by signal 9 (SIGKILL)"),
        ([replace(HUNG, log="one"), replace(HUNG_TOO, log="two")], f"{TIMEOUT}\none"),
        ([EMPTY, GOOD_TOO], None),
        ([EMPTY, HUNG_TOO], TIMEOUT),
        ([EMPTY, EMPTY_TOO], f"{NO_TESTS}\ncollected 3"),
        ([pair("a::1", code=5), GOOD_TOO], "pair 1 of 2: pytest collected no tests (exit code 5)"),
        ([pair("a::1", error="no boxes", log="chatter")], "no boxes"),
    ],
)
def test_the_reason_names_the_pair(pairs, reason):
    graded = together(pairs)
    assert graded.infrastructure_failure_reason == reason
    assert (graded.deselected > 0 and not graded.tests) is (reason or "").startswith(NO_TESTS)


@pytest.mark.parametrize(
    ("sources", "source"),
    [
        (["json-report", "json-report"], "json-report"),
        (["json-report", "ctrf"], "ctrf"),
        (["stream", "json-report"], "stream"),
    ],
)
def test_the_source_is_the_least_that_is_left(sources, source):
    assert together([pair(source=name) for name in sources]).source == source


def test_deselected_tests_count_once_and_only_those_of_the_roster():
    pairs = [pair("a::1", "c::1", deselected=["a::1", "b::1"]), pair("b::1", deselected=["a::1", "strange::1"])]
    assert together(pairs).deselected == 2
    assert together(pairs, pytest_args=()).deselected == 0


def test_tests_that_no_pair_was_to_run_are_deselected():
    assert grade([GOOD], roster_of("a::1", "b::1", "c::1"), RULES).deselected == 2


def test_tests_are_listed_as_one_pair_would():
    pairs = [pair("b::1", "b::2"), evidence_of(RawTest("x::1", "passed", 1.0), roster=roster_of("a::1"))]
    tests = grade(pairs, roster_of("a::1", "b::1", "b::2"), RULES).tests
    assert [test.nodeid for test in tests] == ["a::1", "b::1", "b::2", "x::1"]


def test_a_pair_has_no_say_in_the_tests_of_another():
    reported = [RawTest(name, "passed", 1.0) for name in ("a::1", "b::1")]
    forging = evidence_of(*reported, roster=roster_of("a::1"))
    tests = {test.nodeid: test.status for test in together([forging, pair("b::1")]).tests}
    assert tests == {"a::1": "passed", "b::1": "error"}


def test_a_test_in_a_file_of_no_checkpoint_is_a_regression_whatever_its_markers():
    """The rule of the groups is not asked, as it refuses unknown checkpoints."""
    rules = GradingRules(["checkpoint_1"], "checkpoint_1", lambda *_: GroupType.ERROR)
    assert rules.group("helpers", ["error"]) is GroupType.REGRESSION
    assert rules.group("checkpoint_1", []) is GroupType.ERROR
