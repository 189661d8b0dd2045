"""How many small faults in the reference solutions the tests notice, and which tests notice none."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from slop_code.authoring.check.failure_text import first_line, single_line
from slop_code.authoring.check.findings import Finding, Rule, Severity, Step, StepOutcome
from slop_code.authoring.check.python_sources import location_of_test
from slop_code.authoring.check.reference_verdict import location_of_checkpoint, sound_reference
from slop_code.authoring.check.strength.distortion_trials import try_distortions
from slop_code.authoring.check.strength.mutant_selection import spread
from slop_code.authoring.check.strength.mutant_trials import deciding_tests, try_mutants
from slop_code.authoring.check.strength.python_solution import mutants_of, python_files
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.reports.raw_test import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.authoring.check.strength.distortion_trials import DistortionResult
    from slop_code.authoring.check.strength.mutant_selection import MutantBudget
    from slop_code.authoring.check.strength.mutant_trials import TriedMutant
    from slop_code.authoring.check.workbench import Workbench
    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.report import TestResult

MIN_CAUGHT_SHARE = 0.7
"""Of the mutants; the rest may well be no faults at all."""

MIN_MUTANTS = 5
"""Mutants that it takes to say anything."""

NO_PYTHON = "only Python solutions are mutated"
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
class StrengthResult:
    """What came of the mutants of one checkpoint's reference."""

    checkpoint: str
    tests: Sequence[TestResult]
    made: int
    tried: Sequence[TriedMutant]
    unbuilt: int
    distorted: Sequence[DistortionResult] = ()
    undistorted: str | None = None
    """Why the reference could not be distorted."""

    no_mutants: str | None = None

    @property
    def survivors(self) -> list[TriedMutant]:
        return [one for one in self.tried if not one.caught]

    @property
    def caught(self) -> int:
        return len(self.tried) - len(self.survivors)

    @property
    def unfailed(self) -> list[TestResult]:
        """Tests of this checkpoint that neither a mutant nor anything done to the output made fail."""
        trials: list[TriedMutant | DistortionResult] = [*self.tried, *self.distorted]
        failing = frozenset[str]().union(*(one.failed for one in trials))
        return [test for test in self.tests if test.checkpoint == self.checkpoint and test.nodeid not in failing]

    @property
    def unfailing(self) -> list[TestResult]:
        """Mutants alone are too few to say so."""
        return self.unfailed if self.distorted else []

    def groups(self) -> dict[GroupType, tuple[int, int, int]]:
        """For each with tests: how many, how many mutants they catch, and how many no other group does."""
        group_of = {test.nodeid: test.group_type for test in self.tests}
        by = [{group_of[test] for test in one.failed} for one in self.tried]
        present = [group for group in GroupType if group in group_of.values()]
        return {
            group: (
                sum(own == group for own in group_of.values()),
                sum(group in groups for groups in by),
                sum(groups == {group} for groups in by),
            )
            for group in present
        }


def run(bench: Workbench) -> StepOutcome:
    effort, solved = bench.effort, bench.checkpoints_with_reference()
    able = [checkpoint for checkpoint in solved if deciding_tests(sound_reference(bench, checkpoint))]
    began, found = time.monotonic(), list[StrengthResult]()
    for place, checkpoint in enumerate(able, start=1):
        end = began + (effort.budget.seconds or float("inf")) * place / len(able)
        found.append(strength_of(bench, checkpoint, effort.budget, end))
    unknown = [f"{one.name}: none of its tests counts, so none can catch a mutant" for one in solved if one not in able]
    return StepOutcome(
        tuple(finding for one in found for finding in findings_of(bench, one)),
        (*(line for one in found for line in summary_lines(one)), *unknown),
        {"budget": str(effort.budget), "seed": effort.seed, "checkpoints": dict(map(facts, found))},
    )


def strength_of(bench: Workbench, checkpoint: CheckpointConfig, budget: MutantBudget, end: float) -> StrengthResult:
    before = bench.previous_checkpoint(checkpoint)
    earlier = bench.solution(before) if before else None
    mutants = mutants_of(bench.solution(checkpoint), earlier)
    tried, unbuilt = try_mutants(bench, checkpoint, spread(mutants, bench.effort.seed), budget.mutants, end)
    one = StrengthResult(checkpoint.name, deciding_tests(bench.reference(checkpoint)), len(mutants), tried, unbuilt)
    if not python_files(bench.solution(checkpoint)):
        one = replace(one, no_mutants=NO_PYTHON)
    left = [test.nodeid for test in one.unfailed]
    distorted = try_distortions(bench, checkpoint, left) if left else []
    return replace(one, undistorted=distorted) if isinstance(distorted, str) else replace(one, distorted=distorted)


def findings_of(bench: Workbench, one: StrengthResult) -> Iterator[Finding]:
    if len(one.tried) >= MIN_MUTANTS and one.caught < MIN_CAUGHT_SHARE * len(one.tried):
        yield Finding(
            WEAK,
            location_of_checkpoint(bench.problem, one.checkpoint),
            f"the tests of {one.checkpoint} catch {one.caught} of {len(one.tried)} mutants of its reference",
            checkpoint=one.checkpoint,
            detail="\n".join(tried.mutant.diff for tried in one.survivors[:SHOWN]),
        )
    for name, tests in _by_function(one.unfailing).items():
        many = f", with {len(tests)} sets of parameters" if len(tests) > 1 else ""
        yield Finding(
            UNFAILING,
            location_of_test(bench.problem.path, tests[0].nodeid),
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


def summary_lines(one: StrengthResult) -> Iterator[str]:
    by = [f"{group} {caught} ({alone} alone)" for group, (_, caught, alone) in one.groups().items()]
    left = f"; {one.unbuilt} could not be tried" if one.unbuilt else ""
    if one.no_mutants:
        yield f"{one.checkpoint}: no mutants: {one.no_mutants}"
    else:
        yield f"{one.checkpoint}: {one.caught} of {len(one.tried)} mutants caught, {one.made} possible{left}"
    if one.tried:
        yield f"  caught by {', '.join(by)}"
    if one.undistorted:
        yield f"  not distorted: {one.undistorted}"
    for distorted in one.distorted:
        if distorted.no_verdict:
            yield f"  no verdict on a program that {distorted.distortion.name}: {_in_short(distorted.no_verdict)}"
    for tried in one.survivors[:SHOWN]:
        yield f"  survived: {tried.mutant.name}"
        yield from (f"    {line}" for line in tried.mutant.diff.splitlines())
    if len(one.survivors) > SHOWN:
        yield f"  and {len(one.survivors) - SHOWN} more"


def _in_short(reason: str) -> str:
    return single_line(first_line(reason))


def facts(one: StrengthResult) -> tuple[str, dict[str, Any]]:
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
        "distorted": [
            {
                "program": found.distortion.name,
                "failed": len(found.failed),
                "no_verdict": _in_short(found.no_verdict) if found.no_verdict else None,
            }
            for found in one.distorted
        ],
        "not_distorted": one.undistorted,
        "unfailing": [visible(test.nodeid, LINE_LIMIT) for test in one.unfailing],
    }


STEP = Step("strength", "small faults in the reference are noticed by the tests", (WEAK, UNFAILING), run)
