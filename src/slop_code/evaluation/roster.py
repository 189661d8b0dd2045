"""Roster: the tests that every evaluation of a checkpoint accounts for, and the judge/subject pairs that run them."""

from __future__ import annotations

import heapq
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from slop_code.execution.processors import available_cpus
from slop_code.execution.sandbox import TESTS_DIR, sandbox_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from slop_code.evaluation.config import ProblemConfig, Unit
    from slop_code.execution.environment import EnvironmentSpec

MAX_PAIRS = 1024
_INDEPENDENT_WITH_VALUE = ("-k", "-m", "--deselect")
_INDEPENDENT_OPTION = re.compile(
    r"-[km].+|--deselect=.+|-[lqv]+|-r\w+|--showlocals|--tb=\w+|--durations=\d+", re.DOTALL
)
"""Options that select tests or change what is printed, so that results of tests stay independent."""


def normal_nodeid(nodeid: str) -> str:
    """The node id relative to the tests folder, whatever folder pytest took as its root."""
    file, separator, name = nodeid.partition("::")
    _, inside, path = f"/{file}".rpartition(f"/{TESTS_DIR}/")
    return (path if inside else file.removeprefix("./")) + separator + name


@dataclass(frozen=True, slots=True)
class RosterEntry:
    nodeid: str
    markers: tuple[str, ...]
    """Closest to the test first."""

    pair: int | None = None
    """The judge/subject pair that runs the test, counted from 1, or None if no pair does."""


@dataclass(frozen=True, slots=True)
class Roster:
    entries: tuple[RosterEntry, ...]

    def __post_init__(self) -> None:
        if len(self.nodeids) != len(self.entries):
            raise ValueError("a roster holds a test twice")

    @property
    def nodeids(self) -> frozenset[str]:
        return frozenset(entry.nodeid for entry in self.entries)

    @property
    def pairs(self) -> int:
        return max((entry.pair or 1 for entry in self.entries), default=1)

    def of_pair(self, pair: int) -> Roster:
        return Roster(tuple(entry for entry in self.entries if entry.pair == pair))

    def to_json(self) -> str:
        tests = [{"nodeid": entry.nodeid, "markers": list(entry.markers), "pair": entry.pair} for entry in self.entries]
        return json.dumps({"tests": tests}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Roster:
        """Raises ValueError for anything that `to_json` does not write."""
        try:
            document = json.loads(text)
        except RecursionError as error:
            raise ValueError("a roster is nested too deeply") from error
        if not isinstance(document, dict):
            raise ValueError("a roster is an object with a list of tests")
        return cls(entries_from(document.get("tests")))


def entries_from(value: Any) -> tuple[RosterEntry, ...]:
    if not isinstance(value, list):
        raise ValueError("a roster needs a list of tests")
    return tuple(_entry(item) for item in value)


def _entry(item: Any) -> RosterEntry:
    if not isinstance(item, dict) or not isinstance(item.get("nodeid"), str):
        raise ValueError("a test of a roster needs a nodeid")
    markers, pair = item.get("markers"), item.get("pair")
    if not isinstance(markers, list) or not all(isinstance(marker, str) for marker in markers):
        raise ValueError(f"{item['nodeid']}: markers need to be a list of names")
    if pair is not None and not (type(pair) is int and 1 <= pair <= MAX_PAIRS):
        raise ValueError(f"{item['nodeid']}: pair needs to be a number from 1 to {MAX_PAIRS}")
    return RosterEntry(normal_nodeid(item["nodeid"]), tuple(markers), pair)


def max_pairs_for(problem: ProblemConfig, spec: EnvironmentSpec, arguments: Sequence[str] = ()) -> int:
    """The largest number of pairs on this machine that config.yaml names, whatever the number of tests."""
    single = problem.fixed_pairs == 1 or shared_network(spec) or results_may_depend_on_each_other(arguments)
    return 1 if single else min(problem.fixed_pairs, available_cpus())


def shared_network(spec: EnvironmentSpec) -> str | None:
    """The setting, if any, by which all pairs share a network, where only one of them can listen on a port."""
    sandbox = sandbox_name(spec)
    if sandbox not in ("bubblewrap", "docker"):  # a sandbox of another package may share it
        return f"isolation: {sandbox}"
    network = spec.docker.network or "" if spec.docker else ""
    own = sandbox == "docker" and network != "host" and not network.startswith("container:")
    return "network: full" if spec.network == "full" and not own else None


def shared_network_reason(spec: EnvironmentSpec) -> str | None:
    """Why tests cannot be divided among pairs, if all of them would share a network."""
    shared = shared_network(spec)
    return f"with {shared} all pairs would share one network" if shared else None


def results_may_depend_on_each_other(arguments: Sequence[str]) -> bool:
    """Whether a test's result may depend on another's, as with `-x`. Unknown arguments count as such."""
    words = iter(arguments)
    for word in words:
        if word in _INDEPENDENT_WITH_VALUE:
            next(words, None)
        elif not _INDEPENDENT_OPTION.fullmatch(word):
            return True
    return False


def assign_pairs(roster: Roster, by: Unit, pairs: int, seconds: Mapping[str, float] | None = None) -> Roster:
    """Assigns every test to one of at most `pairs` pairs, the longest unit first, and keeps units together.

    `seconds`: expected durations by node id. A test that is not among them counts as the mean of those that are.
    """
    known = {entry.nodeid: seconds[entry.nodeid] for entry in roster.entries if seconds and entry.nodeid in seconds}
    mean = sum(known.values()) / len(known) if known else 1.0
    units: dict[str, list[str]] = {}
    for entry in roster.entries:
        units.setdefault(unit_of(entry.nodeid, by), []).append(entry.nodeid)
    weights = {unit: sum(known.get(nodeid, mean) for nodeid in nodeids) for unit, nodeids in units.items()}
    loads = [(0.0, 0, number) for number in range(1, max(1, min(pairs, len(units))) + 1)]
    numbers: dict[str, int] = {}
    for unit in sorted(units, key=lambda unit: -weights[unit]):
        load, count, number = heapq.heappop(loads)
        numbers[unit] = number
        heapq.heappush(loads, (load + weights[unit], count + len(units[unit]), number))
    return Roster(tuple(replace(entry, pair=numbers[unit_of(entry.nodeid, by)]) for entry in roster.entries))


def assign_only(roster: Roster, nodeids: Collection[str]) -> Roster:
    """Assigns these tests to the first pair, and the others to no pair."""
    return Roster(tuple(replace(entry, pair=1 if entry.nodeid in nodeids else None) for entry in roster.entries))


def unit_of(nodeid: str, by: Unit) -> str:
    """The file, or by test: the node id of a function with its parameters, or the class of a method."""
    file, _, name = nodeid.partition("::")
    if by == "file":
        return file
    first, inside, _ = name.partition("[")[0].partition("::")
    return f"{file}::{first}" if inside else nodeid
