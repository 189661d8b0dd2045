"""Judge/subject pairs of one checkpoint: how many run at a time, and the tests of each."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from slop_code.evaluation.roster import Roster, RosterEntry
from slop_code.execution.concurrency import available_cpus
from slop_code.execution.sandbox import sandbox_name

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from slop_code.evaluation.config import ProblemConfig, Unit
    from slop_code.evaluation.evidence import Evidence
    from slop_code.execution.environment import EnvironmentSpec

_VALUE_FOLLOWS = ("-k", "-m", "--deselect")
_APART = re.compile(r"-[km].+|--deselect=.+|-[lqv]+|-r\w+|--showlocals|--tb=\w+|--durations=\d+", re.DOTALL)


def max_pairs_for(problem: ProblemConfig, spec: EnvironmentSpec, arguments: Sequence[str] = ()) -> int:
    """How many may run at a time on this machine, however many tests there are."""
    alone = problem.parallel == 1 or shared_network(spec) or tie_tests(arguments)
    return 1 if alone else min(problem.parallel, available_cpus())


def shared_network(spec: EnvironmentSpec) -> str | None:
    """What gives several pairs one and the same network, where a port can be taken only once."""
    sandbox = sandbox_name(spec)
    if sandbox not in ("bubblewrap", "docker"):  # of a sandbox of another package nothing is known
        return f"isolation: {sandbox}"
    network = spec.docker.network or "" if spec.docker else ""
    own = sandbox == "docker" and network != "host" and not network.startswith("container:")
    return "network: full" if spec.network == "full" and not own else None


def tie_tests(arguments: Sequence[str]) -> bool:
    """Whether one test's result may depend on another's, as with -x; to pick tests, or to show more, ties nothing."""
    words = iter(arguments)
    for word in words:
        if word in _VALUE_FOLLOWS:
            next(words, None)
        elif not _APART.fullmatch(word):
            return True
    return False


def assign_pairs(roster: Roster, by: Unit, pairs: int) -> Roster:
    """Each test to one of at most so many pairs, as even in tests as whole units allow."""
    units: dict[str, list[RosterEntry]] = {}
    for entry in roster.entries:
        units.setdefault(unit_of(entry.nodeid, by), []).append(entry)
    groups: list[list[RosterEntry]] = [[] for _ in range(max(1, min(pairs, len(units))))]
    for unit in sorted(units.values(), key=len, reverse=True):
        min(groups, key=len).extend(unit)
    numbers = {entry.nodeid: number for number, group in enumerate(groups, start=1) for entry in group}
    return Roster(tuple(replace(entry, pair=numbers[entry.nodeid]) for entry in roster.entries))


def assign_only(roster: Roster, nodeids: Collection[str]) -> Roster:
    """These tests to one pair, and the others to none."""
    return Roster(tuple(replace(entry, pair=1 if entry.nodeid in nodeids else None) for entry in roster.entries))


def unit_of(nodeid: str, by: Unit) -> str:
    """By test: each set of parameters by itself, and a class as a whole."""
    file, _, name = nodeid.partition("::")
    if by == "file":
        return file
    first, inside, _ = name.partition("[")[0].partition("::")
    return f"{file}::{first}" if inside else nodeid


def weakest_isolation(evidence: Sequence[Evidence]) -> dict[str, Any]:
    """What was in force for all pairs; empty where no box was opened."""
    isolations = [pair.isolation for pair in evidence if pair.isolation]
    if not isolations:
        return {}
    weakest = min(isolations, key=lambda isolation: bool(isolation.get("control_groups")))
    return {**weakest, "pairs": len(evidence)}
