from __future__ import annotations

import threading

import pytest

from slop_code.evaluation import roster as rosters
from slop_code.evaluation.evidence import EVIDENCE_FILES, weakest_isolation
from slop_code.evaluation.run_tests import remove_evidence, run_concurrently
from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope, wait_for
from slop_code.execution.concurrency import available_cpus
from slop_code.execution.environment import EnvironmentSpec
from tests.evidence_records import evidence_of, roster_of
from tests.factories import problem


def groups_of(assigned):
    return [[entry.nodeid for entry in assigned.of_pair(pair).entries] for pair in range(1, assigned.pairs + 1)]


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
def test_tests_of_one_unit_stay_together(nodeid, by, unit):
    assert rosters.unit_of(nodeid, by) == unit


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
def test_pairs_are_even_whole_and_in_order(tests, by, most, groups):
    assigned = rosters.assign_pairs(roster_of(*tests), by, most)
    assert groups_of(assigned) == groups
    assert [entry.nodeid for entry in assigned.entries] == tests


def test_only_the_tests_that_are_asked_for_have_a_pair():
    assigned = rosters.assign_only(roster_of("a::1", "a::2", "b::1"), {"a::2"})
    assert groups_of(assigned) == [["a::2"]]
    assert [entry.pair for entry in assigned.entries] == [None, 1, None]


@pytest.mark.parametrize(
    ("arguments", "dependent"),
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
def test_arguments_that_make_results_depend_on_each_other(arguments, dependent):
    assert rosters.results_may_depend_on_each_other(arguments) is dependent


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
    assert rosters.shared_network(spec) == shared


def test_no_more_pairs_than_processors():
    assert rosters.max_pairs_for(problem(parallel=1), environment()) == 1
    assert rosters.max_pairs_for(problem(parallel=64), environment()) == min(64, available_cpus())
    assert rosters.max_pairs_for(problem(parallel=64), environment(isolation="none")) == 1
    assert rosters.max_pairs_for(problem(parallel=64), environment(), ["-x"]) == 1


@pytest.mark.parametrize(
    ("isolations", "weakest"),
    [
        ([{}, {}], {}),
        ([{"sandbox": "none"}], {"sandbox": "none", "pairs": 1}),
        ([{"control_groups": True}, {"control_groups": True}], {"control_groups": True, "pairs": 2}),
        ([{"control_groups": True}, {"control_groups": False, "warning": "x"}],
         {"control_groups": False, "warning": "x", "pairs": 2}),
        ([{}, {"control_groups": True}, {}], {"control_groups": True, "pairs": 3}),
    ],
)  # fmt: skip
def test_the_isolation_is_that_of_the_weakest(isolations, weakest):
    assert weakest_isolation([evidence_of(isolation=isolation) for isolation in isolations]) == weakest


def test_side_by_side_gives_all_values_in_order():
    both = threading.Barrier(2)
    assert run_concurrently([lambda: (both.wait(20), 1)[1], lambda: (both.wait(20), 2)[1]]) == [1, 2]


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


def test_an_error_cancels_the_others(waits):
    def breaks():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_concurrently([breaks, waits])
    assert waits.ended == ["stopped"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, EvaluationCancelledError])
def test_an_interrupt_of_the_wait_cancels_all(waits, interrupt, monkeypatch):
    def broken_off(_descriptor, _seconds):
        raise interrupt

    monkeypatch.setattr("slop_code.evaluation.run_tests.wait_for", broken_off)
    with pytest.raises(interrupt):
        run_concurrently([waits, waits])
    assert waits.ended == ["stopped"] * 2


def test_a_cancellation_from_outside_reaches_all(waits):
    token = CancelToken()
    both = threading.Barrier(2, action=token.cancel)

    def action():
        both.wait(20)
        waits()

    with cancel_scope(token), pytest.raises(EvaluationCancelledError):
        run_concurrently([action, action])
    assert waits.ended == ["stopped"] * 2
    token.close()


def test_evidence_of_an_earlier_evaluation_is_removed(tmp_path):
    top = tmp_path / ".scbench"
    for folder in (top, top / "1", top / "12", top / "1x"):
        folder.mkdir(parents=True)
        for name in EVIDENCE_FILES:
            (folder / name).touch()
    (top / "12" / "mine").touch()
    remove_evidence(tmp_path)
    left = sorted(str(path.relative_to(top)) for path in top.rglob("*"))
    assert left == ["12", "12/mine", "1x", *sorted(f"1x/{name}" for name in EVIDENCE_FILES)]
    remove_evidence(None)
