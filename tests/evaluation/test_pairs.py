from __future__ import annotations

import threading

import pytest

from slop_code.evaluation import pairs
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.evidence import Evidence
from slop_code.evaluation.pairs import Part
from slop_code.evaluation.report import TestResult
from slop_code.evaluation.reports.raw_test import RawTest
from slop_code.evaluation.roster import Roster, RosterEntry
from slop_code.evaluation.run_tests import RAW_FILES, forget, side_by_side
from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope, wait_for
from slop_code.execution.concurrency import available_cpus
from slop_code.execution.environment import EnvironmentSpec


def roster(*names):
    return Roster(tuple(RosterEntry(name, ()) for name in names))


def names(groups):
    return [[entry.nodeid for entry in group.entries] for group in groups]


@pytest.mark.parametrize(
    ("nodeid", "by", "unit"),
    [
        ("test_a.py::test_x", "file", "test_a.py"),
        ("deep/test_a.py::TestX::test_y[1]", "file", "deep/test_a.py"),
        ("test_a.py::test_x", "test", "test_a.py::test_x"),
        ("test_a.py::test_x[a::b]", "test", "test_a.py::test_x[a::b]"),
        ("test_a.py::test_x[a[0]-c]", "test", "test_a.py::test_x[a[0]-c]"),
        ("test_a.py::TestX::test_y[1]", "test", "test_a.py::TestX"),
        ("test_a.py::TestX::TestInner::test_y", "test", "test_a.py::TestX"),
        ("deep/test_a.py::test_x", "test", "deep/test_a.py::test_x"),
    ],
)
def test_what_stays_together(nodeid, by, unit):
    assert pairs.unit_of(nodeid, by) == unit


@pytest.mark.parametrize(
    ("tests", "by", "most", "groups"),
    [
        (["a::1", "a::2", "b::1"], "file", 1, [["a::1", "a::2", "b::1"]]),
        (["a::1", "a::2", "b::1"], "file", 2, [["a::1", "a::2"], ["b::1"]]),
        (["a::1", "a::2", "b::1"], "file", 9, [["a::1", "a::2"], ["b::1"]]),
        (["a::1", "a::2", "b::1"], "test", 9, [["a::1"], ["a::2"], ["b::1"]]),
        (["a::1", "b::1", "b::2", "c::1"], "file", 2, [["b::1", "b::2"], ["a::1", "c::1"]]),
        (["a::1", "b::1", "a::2", "c::1", "b::2"], "file", 2, [["a::1", "a::2", "c::1"], ["b::1", "b::2"]]),
        (["a::1[x]", "a::2", "a::1[y]", "a::3"], "test", 2, [["a::1[x]", "a::1[y]"], ["a::2", "a::3"]]),
        (["a::1[x]", "a::2", "a::1[y]"], "test", 2, [["a::1[x]", "a::1[y]"], ["a::2"]]),
        (["a::1[x]", "a::1[y]"], "test", 2, [["a::1[x]"], ["a::1[y]"]]),
        (["a::T::1", "a::T::2", "a::3"], "test", 3, [["a::T::1", "a::T::2"], ["a::3"]]),
        (["a::1", "a::2", "a::3", "a::4", "a::5"], "test", 2, [["a::1", "a::3", "a::5"], ["a::2", "a::4"]]),
        ([], "file", 4, [[]]),
    ],
)
def test_groups_are_even_whole_and_in_order(tests, by, most, groups):
    assert names(pairs.partition(roster(*tests), by, most)) == groups


@pytest.mark.parametrize(
    ("arguments", "tied"),
    [
        ([], False),
        (["-k", "-x"], False),
        (["-k", "a or b", "-m", "slow", "--deselect", "test_a.py::test_x"], False),
        (["-kone", "-mslow", "--deselect=test_a.py::test_x"], False),
        (["-vv", "-l", "-ql", "-rP", "--tb=short", "--showlocals", "--durations=5"], False),
        (["-x"], True),
        (["-vx"], True),
        (["--maxfail=1"], True),
        (["--exitfirst"], True),
        (["-p", "random_order"], True),
        (["-k", "a", "-x"], True),
        (["-o", "addopts=-x"], True),
        (["test_a.py"], True),
    ],
)
def test_arguments_that_tie_tests_together(arguments, tied):
    assert pairs.tie_tests(arguments) is tied


def environment(**keys):
    return EnvironmentSpec.model_validate({"type": "local", "name": "test", **keys})


def docker(network=None, **keys):
    return environment(type="docker", docker={"image": "x", "network": network}, **keys)


@pytest.mark.parametrize(
    ("spec", "shared"),
    [
        (environment(), None),
        (environment(isolation="none"), "isolation: none"),
        (environment(network="full"), "network: full"),
        (docker(), None),
        (docker("host"), None),
        (docker(network="own", **{}), None),
        (environment(type="docker", docker={"image": "x"}, network="full"), None),
        (environment(type="docker", docker={"image": "x", "network": "mine"}, network="full"), None),
        (environment(type="docker", docker={"image": "x", "network": "host"}, network="full"), "network: full"),
        (environment(type="docker", docker={"image": "x", "network": "container:a"}, network="full"), "network: full"),
    ],
)
def test_pairs_need_networks_of_their_own(spec, shared):
    assert pairs.shared_network(spec) == shared


def problem(parallel):
    return ProblemConfig.model_validate(
        {
            "name": "p",
            "version": 1,
            "description": "d",
            "tags": [],
            "entry_file": "main",
            "parallel": parallel,
            "checkpoints": {"checkpoint_1": {}},
        }
    )


def test_no_more_pairs_than_processors():
    assert pairs.pairs_at_most(problem(1), environment()) == 1
    assert pairs.pairs_at_most(problem(64), environment()) == min(64, available_cpus())
    assert pairs.pairs_at_most(problem(64), environment(isolation="none")) == 1
    assert pairs.pairs_at_most(problem(64), environment(), ["-x"]) == 1


def part(*own, code=0, reason=None, deselected=(), **more):
    evidence = Evidence((), more.pop("source", "json-report"), deselected=frozenset(deselected))
    return Part(roster(*own), evidence, code, reason, **more)


EMPTY = part("a::1", code=5, reason="no tests", output="collected 3", deselected=["a::1", "b::1"])
EMPTY_TOO = part("b::1", code=5, reason="no tests", output="collected 4", deselected=["a::1", "b::1"])


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ([part("a::1")], 0),
        ([part("a::1"), part("b::1", code=1)], 1),
        ([part("a::1", code=1), part("b::1")], 1),
        ([part("a::1", code=1), part("b::1", code=3)], 3),
        ([part("a::1", code=-1), part("b::1", code=137)], -1),
        ([EMPTY, part("b::1")], 0),
        ([EMPTY, part("b::1", code=1)], 1),
        ([EMPTY, EMPTY_TOO], 5),
        ([part("a::1", code=5), part("b::1")], 5),
    ],
)
def test_the_exit_code_of_all(parts, code):
    assert pairs.exit_code_of(parts) == code


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([part("a::1"), part("b::1", code=1)], None),
        ([part("a::1", reason="hung")], "hung"),
        ([part("a::1", reason="hung", output="last words")], "hung\nlast words"),
        ([part("a::1"), part("b::1", reason="hung")], "pair 2 of 2: hung"),
        ([part("a::1", reason="hung"), part("b::1", reason="fell")], "pair 1 of 2: hung\npair 2 of 2: fell"),
        ([part("a::1", reason="full", output="one"), part("b::1", reason="full", output="two")], "full\none"),
        ([EMPTY, part("b::1")], None),
        ([EMPTY, part("b::1", reason="hung")], "hung"),
        ([EMPTY, EMPTY_TOO], "no tests\ncollected 3"),
        ([part("a::1", code=5, reason="no tests"), part("b::1")], "pair 1 of 2: no tests"),
    ],
)
def test_the_reason_of_all_names_the_pair(parts, reason):
    assert pairs.reason_of(parts) == reason


@pytest.mark.parametrize(
    ("sources", "source"),
    [
        (["json-report", "json-report"], "json-report"),
        (["json-report", "ctrf"], "ctrf"),
        (["stream", "json-report"], "stream"),
    ],
)
def test_the_evidence_is_the_least_that_is_left(sources, source):
    assert pairs.source_of([part(source=one) for one in sources]) == source


@pytest.mark.parametrize(
    ("isolations", "told"),
    [
        ([{}, {}], {}),
        ([{"sandbox": "none"}], {"sandbox": "none", "pairs": 1}),
        ([{"control_groups": True}, {"control_groups": True}], {"control_groups": True, "pairs": 2}),
        ([{"control_groups": True}, {"control_groups": False, "warning": "x"}],
         {"control_groups": False, "warning": "x", "pairs": 2}),
        ([{}, {"control_groups": True}, {}], {"control_groups": True, "pairs": 3}),
    ],
)  # fmt: skip
def test_the_isolation_is_that_of_the_weakest(isolations, told):
    assert pairs.isolation_of([part(isolation=one) for one in isolations]) == told


def test_what_was_left_out_counts_once_and_only_what_is_known():
    parts = [part(deselected=["a::1", "b::1"]), part(deselected=["a::1", "strange::1"])]
    assert pairs.deselected_of(parts, roster("a::1", "b::1", "c::1")) == 2


def result(nodeid, message=None):
    file, _, name = nodeid.partition("::")
    return TestResult(
        id=name,
        checkpoint="checkpoint_1",
        group_type="Core",
        status="passed",
        duration_ms=1,
        file_path=file,
        markers=[],
        failure_message=message,
    )


@pytest.mark.parametrize(
    ("found", "listed"),
    [
        (["b::1", "b::2", "a::1"], ["a::1", "b::1", "b::2"]),
        (["b::2"], ["b::2"]),
        (["x::1", "b::2", "a::1", "x::1"], ["a::1", "b::2", "x::1"]),
    ],
)
def test_tests_are_listed_as_one_pair_would(found, listed):
    tests = pairs.in_order(roster("a::1", "b::1", "b::2"), map(result, found))
    assert [f"{test.file_path}::{test.id}" for test in tests] == listed


def test_a_pair_has_no_say_in_the_tests_of_another():
    said = tuple(RawTest(name, "passed", 1.0) for name in ("a::1", "b::1", "strange::1"))
    one = Part(roster("a::1"), Evidence(said, "json-report"))
    left = pairs.own_evidence(one, roster("a::1", "b::1"))
    assert [test.nodeid for test in left.tests] == ["a::1", "strange::1"]


def test_side_by_side_gives_all_values_in_order():
    both = threading.Barrier(2)
    assert side_by_side([lambda: (both.wait(20), 1)[1], lambda: (both.wait(20), 2)[1]]) == [1, 2]


@pytest.fixture
def waits():
    """Waits until it is stopped, which is noted in `ended`."""

    def wait():
        try:
            wait_for(None, 20)
        except EvaluationCancelledError:
            wait.ended.append("stopped")
            raise

    wait.ended = []
    return wait


def test_an_error_stops_the_others(waits):
    def breaks():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        side_by_side([breaks, waits])
    assert waits.ended == ["stopped"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, EvaluationCancelledError])
def test_whoever_waits_and_is_interrupted_stops_all(waits, interrupt, monkeypatch):
    def broken_off(_descriptor, _seconds):
        raise interrupt

    monkeypatch.setattr("slop_code.evaluation.run_tests.wait_for", broken_off)
    with pytest.raises(interrupt):
        side_by_side([waits, waits])
    assert waits.ended == ["stopped"] * 2


def test_a_stop_from_outside_reaches_all(waits):
    token = CancelToken()
    both = threading.Barrier(2, action=token.cancel)

    def action():
        both.wait(20)
        waits()

    with cancel_scope(token), pytest.raises(EvaluationCancelledError):
        side_by_side([action, action])
    assert waits.ended == ["stopped"] * 2
    token.close()


def test_old_reports_of_either_kind_are_forgotten(tmp_path):
    top = tmp_path / ".scbench"
    for folder in (top, top / "1", top / "12", top / "1x"):
        folder.mkdir(parents=True)
        for name in RAW_FILES:
            (folder / name).touch()
    (top / "12" / "mine").touch()
    forget(tmp_path)
    left = sorted(str(path.relative_to(top)) for path in top.rglob("*"))
    assert left == ["12", "12/mine", "1x", *sorted(f"1x/{name}" for name in RAW_FILES)]
    forget(None)
