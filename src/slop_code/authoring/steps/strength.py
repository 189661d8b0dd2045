"""How many small faults in the reference solutions the tests notice, and which tests notice none."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slop_code.authoring.finding import Finding, Outcome, Place, Rule, Severity, Step
from slop_code.authoring.mutants.choose import parse_budget, spread
from slop_code.authoring.mutants.solution import mutants_of
from slop_code.authoring.mutants.trying import telling, try_distortions, try_mutants
from slop_code.authoring.sources import place_of
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.reports.record import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.authoring.bench import Workbench
    from slop_code.authoring.mutants.choose import Budget
    from slop_code.authoring.mutants.trying import Distorted, Tried
    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.report import TestResult

ENOUGH = 0.7
"""Of the mutants; the rest may well be no faults at all."""

FEWEST = 5
"""Mutants that it takes to say anything."""

SHOWN = 10
LINE_LIMIT = 300

WEAK = Rule(
    "weak-tests",
    Severity.WARNING,
    "Too many faults put into the reference are noticed by no test",
    "Read the diffs: each that changes what the specification promises needs a test that fails with it.",
)
UNFAILING = Rule(
    "unfailing-test",
    Severity.WARNING,
    "A test passes whatever the program does",
    "Let the test look at what the program prints, at its exit status or at the files that it writes.",
)


@dataclass(frozen=True, slots=True)
class Strength:
    """What came of the mutants of one checkpoint's reference."""

    checkpoint: str
    tests: Sequence[TestResult]
    made: int
    tried: Sequence[Tried]
    unbuilt: int
    distorted: Sequence[Distorted]

    @property
    def survivors(self) -> list[Tried]:
        return [one for one in self.tried if not one.caught]

    @property
    def caught(self) -> int:
        return len(self.tried) - len(self.survivors)

    @property
    def unfailing(self) -> list[TestResult]:
        """Tests of this checkpoint that neither a mutant nor anything done to the output made fail."""
        trials: list[Tried | Distorted] = [*self.tried, *self.distorted]
        failing = frozenset[str]().union(*(one.failed for one in trials))
        own = [test for test in self.tests if test.checkpoint == self.checkpoint]
        return [test for test in own if test.nodeid not in failing] if self.distorted else []

    def groups(self) -> dict[GroupType, tuple[int, int, int]]:
        """For each with tests: how many, how many mutants they catch, and how many no other group does."""
        group_of = {test.nodeid: test.group_type for test in self.tests}
        by = [{group_of[test] for test in one.failed} for one in self.tried if not one.ended]
        present = [group for group in GroupType if group in group_of.values()]
        return {
            group: (
                sum(own == group for own in group_of.values()),
                sum(group in groups for groups in by),
                sum(groups == {group} for groups in by),
            )
            for group in present
        }


def run(bench: Workbench) -> Outcome:
    budget = parse_budget(bench.effort.budget)
    began, solved = time.monotonic(), bench.solved()
    found, unknown = list[Strength](), list[str]()
    for place, checkpoint in enumerate(solved, start=1):
        if telling(bench.reference(checkpoint)):
            end = began + (budget.seconds or float("inf")) * place / len(solved)
            found.append(strength_of(bench, checkpoint, budget, end))
        else:
            unknown.append(f"{checkpoint.name}: its reference passes no test, so no test can catch a mutant of it")
    return Outcome(
        tuple(finding for one in found for finding in judged(bench, one)),
        (*(line for one in found for line in told(one)), *unknown),
        {"budget": bench.effort.budget, "seed": bench.effort.seed} | {"checkpoints": dict(map(facts, found))},
    )


def strength_of(bench: Workbench, checkpoint: CheckpointConfig, budget: Budget, end: float) -> Strength:
    before = bench.before(checkpoint)
    earlier = bench.solution(before) if before else None
    entry = bench.environment.entry(bench.problem.entry_file)[-1].removeprefix("./")
    mutants = mutants_of(bench.solution(checkpoint), entry, earlier)
    distorted = try_distortions(bench, checkpoint)
    tried, unbuilt = try_mutants(bench, checkpoint, spread(mutants, bench.effort.seed), budget.mutants, end)
    return Strength(checkpoint.name, telling(bench.reference(checkpoint)), len(mutants), tried, unbuilt, distorted)


def judged(bench: Workbench, one: Strength) -> Iterator[Finding]:
    if len(one.tried) >= FEWEST and one.caught < ENOUGH * len(one.tried):
        yield Finding(
            WEAK,
            Place(f"tests/test_{one.checkpoint}.py", 1),
            f"the tests of {one.checkpoint} catch {one.caught} of {len(one.tried)} mutants of its reference",
            checkpoint=one.checkpoint,
            detail="\n".join(tried.mutant.diff for tried in one.survivors[:SHOWN]),
        )
    for name, tests in _by_function(one.unfailing).items():
        many = f", with {len(tests)} sets of parameters" if len(tests) > 1 else ""
        yield Finding(
            UNFAILING,
            place_of(bench.problem.path, tests[0].nodeid),
            visible(f"{name} passes whatever the program prints, writes or ends with{many}", LINE_LIMIT),
            checkpoint=one.checkpoint,
            test=tests[0].nodeid,
            detail="it passed with a program that\n"
            + "\n".join(f"- {distorted.distortion.name}" for distorted in one.distorted),
        )


def _by_function(tests: Sequence[TestResult]) -> dict[str, list[TestResult]]:
    found = defaultdict(list)
    for test in tests:
        found[test.nodeid.partition("[")[0]].append(test)
    return dict(found)


def told(one: Strength) -> Iterator[str]:
    by = [f"{group} {caught} ({alone} alone)" for group, (_, caught, alone) in one.groups().items()]
    left = f"; {one.unbuilt} could not be set up" if one.unbuilt else ""
    yield f"{one.checkpoint}: {one.caught} of {len(one.tried)} mutants caught, {one.made} possible{left}"
    if one.tried:
        yield f"  caught by {', '.join(by)}"
    for distorted in one.distorted:
        if not distorted.failed:
            yield f"  no test notices a program that {distorted.distortion.name}"
    for tried in one.survivors[:SHOWN]:
        yield f"  survived: {tried.mutant.name}"
        yield from (f"    {line}" for line in tried.mutant.diff.splitlines())
    if len(one.survivors) > SHOWN:
        yield f"  and {len(one.survivors) - SHOWN} more"


def facts(one: Strength) -> tuple[str, dict[str, Any]]:
    return one.checkpoint, {
        "made": one.made,
        "tried": len(one.tried),
        "caught": one.caught,
        "unbuilt": one.unbuilt,
        "groups": {
            str(group): {"tests": tests, "caught": caught, "alone": alone}
            for group, (tests, caught, alone) in one.groups().items()
        },
        "mutants": [
            {
                "file": visible(tried.mutant.file, LINE_LIMIT),
                "line": tried.mutant.line,
                "kind": tried.mutant.edit.kind,
                "caught": tried.caught,
                "failed": len(tried.failed),
                "ended": visible(tried.ended, LINE_LIMIT) if tried.ended else None,
                "diff": tried.mutant.diff,
            }
            for tried in one.tried
        ],
        "distorted": [{"program": found.distortion.name, "failed": len(found.failed)} for found in one.distorted],
        "unfailing": [visible(test.nodeid, LINE_LIMIT) for test in one.unfailing],
    }


STEP = Step("strength", "small faults in the reference are noticed by the tests", (WEAK, UNFAILING), run)
