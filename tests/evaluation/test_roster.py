from __future__ import annotations

import pytest

from slop_code.evaluation import roster as rosters
from slop_code.execution.environment import EnvironmentSpec
from slop_code.execution.processors import available_cpus
from tests.evidence_records import roster_of
from tests.factories import problem


def pairs_of(assigned):
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
    assert pairs_of(assigned) == groups
    assert [entry.nodeid for entry in assigned.entries] == tests


@pytest.mark.parametrize(
    ("seconds", "by", "groups"),
    [
        ({}, "test", [["a::1", "a::3", "b::1"], ["a::2", "a::4"]]),
        ({"a::1": 9.0}, "test", [["a::1", "a::3", "b::1"], ["a::2", "a::4"]]),
        ({"a::1": 9.0, "a::2": 1.0}, "test", [["a::1", "b::1"], ["a::2", "a::3", "a::4"]]),
        (
            dict.fromkeys(["a::1", "a::2", "a::3", "a::4", "b::1"], 0.5),
            "test",
            [["a::1", "a::3", "b::1"], ["a::2", "a::4"]],
        ),
        ({"a::1": 1, "a::2": 1, "a::3": 1, "a::4": 1, "b::1": 4}, "test", [["b::1"], ["a::1", "a::2", "a::3", "a::4"]]),
        ({"a::4": 5, "b::1": 9, "other": 99}, "file", [["a::1", "a::2", "a::3", "a::4"], ["b::1"]]),
        ({"a::1": 0, "a::2": 0, "a::3": 0, "a::4": 0, "b::1": 0}, "test", [["a::1", "a::3", "b::1"], ["a::2", "a::4"]]),
    ],
    ids=["nothing known", "one known", "two known", "equal", "one long test", "whole files", "no time at all"],
)
def test_pairs_are_balanced_by_earlier_durations(seconds, by, groups):
    assigned = rosters.assign_pairs(roster_of("a::1", "a::2", "a::3", "a::4", "b::1"), by, 2, seconds)
    assert pairs_of(assigned) == groups


def test_only_the_tests_that_are_asked_for_have_a_pair():
    assigned = rosters.assign_only(roster_of("a::1", "a::2", "b::1"), {"a::2"})
    assert pairs_of(assigned) == [["a::2"]]
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
        (docker(network="own"), None),
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
