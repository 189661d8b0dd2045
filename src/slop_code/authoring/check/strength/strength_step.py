"""Step `strength`: mutants of the reference that tests catch, and tests that never fail."""

from __future__ import annotations

import platform
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code._safe_text import escape_control
from slop_code._suggestions import first_names
from slop_code.authoring.check.control_programs import CONTROLS, CRASH, ControlProgram
from slop_code.authoring.check.failure_text import first_line
from slop_code.authoring.check.findings import Finding, Rule, Step, StepOutcome
from slop_code.authoring.check.python_sources import location_of_checkpoint, location_of_test
from slop_code.authoring.check.strength.mutant import spread
from slop_code.authoring.check.strength.mutant_trials import deciding_tests, try_mutants, with_short_timeouts
from slop_code.authoring.check.strength.python_solution import mutants_of, python_files, unparsed_files
from slop_code.errors import InfrastructureError
from slop_code.evaluation.groups import GroupType
from slop_code.execution.progress_events import ProgressEvent, ProgressKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.authoring.check.strength.mutant import MutantBudget
    from slop_code.authoring.check.strength.mutant_trials import TriedMutant
    from slop_code.authoring.check.workbench import ResultsOrError, Workbench
    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.report import TestResult

MIN_CAUGHT_SHARE = 0.7
"""Not all mutants, since some of them are no faults at all."""

MIN_MUTANTS = 5
"""With fewer mutants there is no finding."""

NO_PYTHON = "only Python solutions are mutated"
MAX_SURVIVORS = 10
MAX_LINE = 300
MAX_FILES = 5

WEAK = Rule.warning(
    "weak-tests",
    "Tests do not catch enough mutants of the reference",
    "Read the diffs: each mutant that breaks the specification needs a test that fails with it.",
)
UNFAILING = Rule.warning(
    "unfailing-test",
    "A test passes whatever the program does",
    "Let the test check the output, the exit status or the files that the program writes.",
)


@dataclass(frozen=True, slots=True)
class TriedControl:
    control: ControlProgram
    failed: frozenset[str]
    """Without a verdict, tests without a result count as failed, as they might fail."""

    no_verdict: str | None = None


@dataclass(frozen=True, slots=True)
class StrengthResult:
    """Mutants of a checkpoint's reference and control programs, and the tests that failed with them."""

    checkpoint: str
    tests: Sequence[TestResult]
    made: int
    """Mutants that are possible."""

    tried: Sequence[TriedMutant]
    unbuilt: int
    """Mutants that could not be evaluated."""

    controls: Sequence[TriedControl] = ()
    """Tried with the tests that failed with no mutant."""

    no_mutants: str | None = None
    """The reason why no mutant was tried."""

    unparsed: tuple[str, ...] = ()
    """Python files without mutants, as slop-code's own Python cannot parse them."""

    @property
    def survivors(self) -> list[TriedMutant]:
        return [tried for tried in self.tried if not tried.caught]

    @property
    def caught(self) -> int:
        return len(self.tried) - len(self.survivors)

    @property
    def unfailing(self) -> list[TestResult]:
        """Tests of this checkpoint that failed with no mutant and no control program."""
        trials: list[TriedMutant | TriedControl] = [*self.tried, *self.controls]
        failing = frozenset[str]().union(*(trial.failed for trial in trials))
        return [test for test in self.tests if test.checkpoint == self.checkpoint and test.nodeid not in failing]

    def groups(self) -> dict[GroupType, tuple[int, int, int]]:
        """For each group: its tests, the mutants that they catch, and the mutants that no other group catches."""
        group_of = {test.nodeid: test.group_type for test in self.tests}
        by = [{group_of[test] for test in tried.failed} for tried in self.tried]
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
    effort, checkpoints = bench.effort, bench.checkpoints_with_reference()
    decided = [checkpoint for checkpoint in checkpoints if deciding_tests(bench.sound_reference(checkpoint))]
    began, results = time.monotonic(), list[StrengthResult]()
    for number, checkpoint in enumerate(decided, start=1):
        end = began + (effort.budget.seconds or float("inf")) * number / len(decided)
        results.append(strength_of(bench, checkpoint, effort.budget, end))
    undecided = [
        f"{checkpoint.name}: none of its tests counts, so none can catch a mutant"
        for checkpoint in checkpoints
        if checkpoint not in decided
    ]
    return StepOutcome(
        tuple(finding for result in results for finding in findings_of(bench, result)),
        (*(line for result in results for line in summary_lines(result)), *undecided),
        {"budget": str(effort.budget), "seed": effort.seed, "checkpoints": dict(map(facts, results))},
    )


def strength_of(bench: Workbench, checkpoint: CheckpointConfig, budget: MutantBudget, end: float) -> StrengthResult:
    before = bench.previous_checkpoint(checkpoint)
    earlier = bench.solution(before) if before else None
    mutants, unparsed = mutants_of(bench.solution(checkpoint), earlier), unparsed_files(bench.solution(checkpoint))
    if unparsed and not mutants:
        raise InfrastructureError(f"{checkpoint.name}: {unparsed_text(unparsed)}; run slop-code with a newer Python")
    limit = None if budget.mutants is None else min(budget.mutants, len(mutants))
    tried, unbuilt = try_mutants(bench, checkpoint, spread(mutants, bench.effort.seed), limit, end)
    result = StrengthResult(checkpoint.name, deciding_tests(bench.reference(checkpoint)), len(mutants), tried, unbuilt)
    if not python_files(bench.solution(checkpoint)):
        result = replace(result, no_mutants=NO_PYTHON)
    result = replace(result, unparsed=unparsed)
    left = tuple(test.nodeid for test in result.unfailing)
    return replace(result, controls=try_controls(bench, checkpoint, left)) if left else result


def try_controls(bench: Workbench, checkpoint: CheckpointConfig, tests: tuple[str, ...]) -> list[TriedControl]:
    """Mutants alone are too few to tell that a test never fails."""
    controls = (*CONTROLS, CRASH)
    quick = with_short_timeouts(bench.environment, checkpoint, bench.reference(checkpoint))
    event = ProgressEvent(ProgressKind.EVALUATE_CONTROLS, checkpoint=checkpoint.name, total=len(controls))
    with tempfile.TemporaryDirectory(prefix="slop-code-controls-") as folder:
        requests = [control.request(bench.problem, quick, checkpoint, Path(folder), tests) for control in controls]
        outcomes = bench.evaluate_all(requests, event)
    return [control_result(control, tests, outcome) for control, outcome in zip(controls, outcomes, strict=True)]


def control_result(control: ControlProgram, tests: Sequence[str], outcome: ResultsOrError) -> TriedControl:
    if isinstance(outcome, InfrastructureError):
        return TriedControl(control, frozenset(tests), str(outcome))
    passed = {test.nodeid for test in outcome.tests if test.status == "passed"}
    return TriedControl(control, frozenset(tests) - passed, outcome.infrastructure_failure_reason)


def findings_of(bench: Workbench, result: StrengthResult) -> Iterator[Finding]:
    if len(result.tried) >= MIN_MUTANTS and result.caught < MIN_CAUGHT_SHARE * len(result.tried):
        yield Finding(
            WEAK,
            location_of_checkpoint(bench.problem, result.checkpoint),
            f"the tests of {result.checkpoint} catch {result.caught} of {len(result.tried)} mutants of its reference",
            checkpoint=result.checkpoint,
            detail="\n".join(tried.mutant.diff for tried in result.survivors[:MAX_SURVIVORS]),
        )
    for name, tests in _by_function(result.unfailing).items():
        many = f", with {len(tests)} sets of parameters" if len(tests) > 1 else ""
        yield Finding(
            UNFAILING,
            location_of_test(bench.problem.path, tests[0].nodeid),
            escape_control(f"{name} passes whatever the program prints, writes or ends with{many}", MAX_LINE),
            checkpoint=result.checkpoint,
            test=tests[0].nodeid,
            detail="\n".join(["it passed with", *(f"- {tried.control.about}" for tried in result.controls)]),
        )


def _by_function(tests: Sequence[TestResult]) -> dict[str, list[TestResult]]:
    functions = defaultdict(list)
    for test in tests:
        functions[test.nodeid.partition("[")[0]].append(test)
    return dict(functions)


def summary_lines(result: StrengthResult) -> Iterator[str]:
    by = [f"{group} {caught} ({alone} alone)" for group, (_, caught, alone) in result.groups().items()]
    left = f"; {result.unbuilt} could not be tried" if result.unbuilt else ""
    if result.no_mutants:
        yield f"{result.checkpoint}: no mutants: {result.no_mutants}"
    else:
        caught = f"{result.caught} of {len(result.tried)} mutants caught"
        yield f"{result.checkpoint}: {caught}, {result.made} possible{left}"
    if result.unparsed:
        yield f"  {unparsed_text(result.unparsed)}"
    if result.tried:
        yield f"  caught by {', '.join(by)}"
    for control in result.controls:
        if control.no_verdict:
            yield f"  no verdict on {control.control.about}: {first_line(control.no_verdict)}"
    for tried in result.survivors[:MAX_SURVIVORS]:
        yield f"  survived: {tried.mutant.name}"
        yield from (f"    {line}" for line in tried.mutant.diff.splitlines())
    if len(result.survivors) > MAX_SURVIVORS:
        yield f"  and {len(result.survivors) - MAX_SURVIVORS} more"


def unparsed_text(files: Sequence[str]) -> str:
    names = escape_control(first_names(files, MAX_FILES), MAX_LINE)
    return f"no mutants of {names}: Python {platform.python_version()}, which runs slop-code, cannot parse it"


def facts(result: StrengthResult) -> tuple[str, dict[str, Any]]:
    return result.checkpoint, {
        "made": result.made,
        "tried": len(result.tried),
        "caught": result.caught,
        "unbuilt": result.unbuilt,
        "unparsed": [escape_control(name, MAX_LINE) for name in result.unparsed],
        "groups": {
            str(group): {"tests": tests, "caught": caught, "alone": alone}
            for group, (tests, caught, alone) in result.groups().items()
        },
        "mutants": [
            {
                "file": escape_control(tried.mutant.file, MAX_LINE),
                "line": tried.mutant.line,
                "kind": tried.mutant.edit.kind,
                "caught": tried.caught,
                "failed": len(tried.failed),
                "ended": escape_control(tried.ended, MAX_LINE) if tried.ended else None,
                "diff": tried.mutant.diff,
            }
            for tried in result.tried
        ],
        "controls": [
            {
                "control": tried.control.name,
                "failed": len(tried.failed),
                "no_verdict": first_line(tried.no_verdict) if tried.no_verdict else None,
            }
            for tried in result.controls
        ],
        "unfailing": [escape_control(test.nodeid, MAX_LINE) for test in result.unfailing],
    }


STEP = Step("strength", "tests catch small faults that are put into the reference", (WEAK, UNFAILING), run)
