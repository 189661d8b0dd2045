"""Several judge/subject pairs for one checkpoint: which tests each runs, and what they found together."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

from slop_code.evaluation.evidence import Evidence, Source
from slop_code.evaluation.roster import Roster, RosterEntry
from slop_code.execution.concurrency import available_cpus
from slop_code.execution.sandbox import sandbox_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slop_code.evaluation.config import ProblemConfig, Unit
    from slop_code.evaluation.report import TestResult
    from slop_code.execution.environment import EnvironmentSpec

NEVER_RAN = -1
"""`pytest_exit_code` of an evaluation that did not come as far as pytest."""

NO_TESTS = 5
NO_EVIDENCE = Evidence((), "stream")
_VALUE_FOLLOWS = ("-k", "-m", "--deselect")
_APART = re.compile(r"-[km].+|--deselect=.+|-[lqv]+|-r\w+|--showlocals|--tb=\w+|--durations=\d+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Part:
    """What one pair has to say about its own tests."""

    own: Roster
    evidence: Evidence = NO_EVIDENCE
    exit_code: int = NEVER_RAN
    reason: str | None = None
    output: str = ""
    """What pytest printed last, where no test left a result."""

    isolation: Mapping[str, Any] = field(default_factory=dict)
    """Empty where no box was opened."""

    @property
    def told(self) -> str | None:
        return f"{self.reason}\n{self.output}" if self.reason and self.output else self.reason

    @property
    def emptied(self) -> bool:
        """Whether pytest arguments left out all its tests, and nothing else was wrong."""
        return self.exit_code == NO_TESTS and self.own.nodeids <= self.evidence.deselected


def pairs_at_most(problem: ProblemConfig, spec: EnvironmentSpec, arguments: Sequence[str] = ()) -> int:
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


def partition(roster: Roster, by: Unit, pairs: int) -> list[Roster]:
    """At most so many groups, as even in tests as whole units allow; each in the roster's order."""
    units: dict[str, list[RosterEntry]] = {}
    for entry in roster.entries:
        units.setdefault(unit_of(entry.nodeid, by), []).append(entry)
    groups: list[list[RosterEntry]] = [[] for _ in range(max(1, min(pairs, len(units))))]
    for unit in sorted(units.values(), key=len, reverse=True):
        min(groups, key=len).extend(unit)
    chosen = [{entry.nodeid for entry in group} for group in groups]
    return [Roster(tuple(entry for entry in roster.entries if entry.nodeid in group)) for group in chosen]


def unit_of(nodeid: str, by: Unit) -> str:
    """By test: each set of parameters by itself, and a class as a whole."""
    file, _, name = nodeid.partition("::")
    if by == "file":
        return file
    first, inside, _ = name.partition("[")[0].partition("::")
    return f"{file}::{first}" if inside else nodeid


def own_evidence(part: Part, roster: Roster) -> Evidence:
    """Without what it says of another pair's tests."""
    others = roster.nodeids - part.own.nodeids
    return replace(part.evidence, tests=tuple(test for test in part.evidence.tests if test.nodeid not in others))


def alone(part: Part, roster: Roster) -> Part:
    """Of a pair that ran some tests only: the others were left out."""
    return replace(part, evidence=replace(part.evidence, deselected=roster.nodeids - part.own.nodeids))


def in_order(roster: Roster, tests: Iterable[TestResult]) -> list[TestResult]:
    """As one pair would list them: each once, those that the roster does not know last."""
    found: dict[tuple[str, str], TestResult] = {}
    for test in tests:
        found.setdefault((test.file_path, test.id), test)
    keys = [entry.nodeid.partition("::")[::2] for entry in roster.entries]
    return [found.pop(key) for key in keys if key in found] + list(found.values())


def exit_code_of(parts: Sequence[Part]) -> int:
    """As of one pytest: the first that says more than that tests failed, else whether any did."""
    codes = [part.exit_code for _, part in _telling(parts)]
    return next((code for code in codes if code not in (0, 1)), max(codes))


def reason_of(parts: Sequence[Part]) -> str | None:
    """Why there is no verdict; which pair it was, unless all say the same."""
    telling = _telling(parts)
    failed = [(number, part) for number, part in telling if part.reason is not None]
    if not failed:
        return None
    if len({part.reason for _, part in telling}) == 1:
        return failed[0][1].told
    return "\n".join(f"pair {number} of {len(parts)}: {part.told}" for number, part in failed)


def _telling(parts: Sequence[Part]) -> list[tuple[int, Part]]:
    """Those with tests to run, unless none has."""
    numbered = list(enumerate(parts, start=1))
    return [(number, part) for number, part in numbered if not part.emptied] or numbered


def source_of(parts: Sequence[Part]) -> Source:
    """The least that any pair left."""
    order: tuple[Source, ...] = get_args(Source)
    return max((part.evidence.source for part in parts), key=order.index)


def deselected_of(parts: Sequence[Part], roster: Roster) -> int:
    return len(frozenset().union(*[part.evidence.deselected for part in parts]) & roster.nodeids)


def isolation_of(parts: Sequence[Part]) -> dict[str, Any]:
    """What was in force for all; empty where no box was opened."""
    found = [part.isolation for part in parts if part.isolation]
    if not found:
        return {}
    weakest = min(found, key=lambda one: bool(one.get("control_groups")))
    return {**weakest, "pairs": len(parts)}
