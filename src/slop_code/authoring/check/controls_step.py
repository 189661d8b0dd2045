"""Step `controls`: programs that solve nothing, and the previous reference, must fail tests."""

from __future__ import annotations

import functools
import os
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.authoring.check.control_programs import CONTROLS, PREVIOUS
from slop_code.authoring.check.failure_text import first_line, first_lines, shown_test
from slop_code.authoring.check.findings import Finding, Rule, Severity, Step, StepOutcome
from slop_code.authoring.check.python_sources import location_of_checkpoint, location_of_test
from slop_code.authoring.check.workbench import EvaluationRequest, evaluate_with_retry, results_or_raise
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import PassPolicy
from slop_code.execution.progress_events import ProgressEvent, ProgressKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from slop_code.authoring.check.workbench import Workbench
    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults, TestResult

PASSES = Rule.warning(
    "control-passes",
    "A test passes for a program that does nothing; an error if it is a Core test",
    "Check something that only a solution gets right: the whole output, not a part of it, and the exit status.",
)
EXIT_ONLY = Rule.warning(
    "error-test-weak",
    "A test of an error passes for a program that always fails",
    "Check the error message as well, or add a call that has to succeed to the same test.",
)
POLICY = Rule.error(
    "policy-passes-control",
    "A policy is passed by a submission that does not solve the checkpoint",
    "Add tests that it fails, or strengthen those that it passes.",
)
BREAKS = Rule.error(
    "control-no-verdict",
    "The tests give no verdict on a submission that does not work",
    "Let tests and fixtures fail, with a timeout for everything they wait for; nothing may end pytest itself.",
)
NOTHING_NEW = Rule.note(
    "passes-already",
    "A test of a checkpoint passes with the reference of the previous checkpoint; a warning if all of its group do",
    "Mark it regression if it tests old behaviour, or make it test new behaviour.",
)
STRICT = (PassPolicy.ALL_CASES, PassPolicy.ALL_NON_ERROR_CASES, PassPolicy.CORE_CASES, PassPolicy.ALL_CORE_CASES)
"""The other policies need a single passed test, which has a finding of its own."""

ABOUT = {control.name: control.about for control in CONTROLS} | {PREVIOUS: "the reference of the previous checkpoint"}
FAILING = frozenset(control.name for control in CONTROLS if control.fails)


@dataclass(frozen=True, slots=True)
class ControlResult:
    """The result of a control program at a checkpoint."""

    checkpoint: str
    control: str
    results: CorrectnessResults

    @property
    def passed(self) -> list[TestResult]:
        return [test for test in self.results.tests if test.status == "passed"]


def run(bench: Workbench) -> StepOutcome:
    with tempfile.TemporaryDirectory(prefix="slop-code-controls-") as folder:
        named = [
            pair
            for checkpoint in bench.checkpoints
            for pair in requests(bench, checkpoint, Path(folder) / checkpoint.name)
        ]
        event = ProgressEvent(ProgressKind.EVALUATE_CONTROLS, total=len(named))
        evaluate_all = functools.partial(bench.evaluate_all, event=event)
        results = results_or_raise(evaluate_with_retry(evaluate_all, [request for _, request in named]))
    rows = [
        ControlResult(request.checkpoint.name, name, result)
        for (name, request), result in zip(named, results, strict=True)
    ]
    verdicts = [row for row in rows if not row.results.infrastructure_failure]
    findings = [
        *no_verdict_findings(bench, [row for row in rows if row.results.infrastructure_failure]),
        *weak_test_findings(bench.problem.path, verdicts),
        *policy_findings(bench.problem, verdicts),
        *nothing_new_findings(bench.problem.path, verdicts),
    ]
    summary = tuple(summary_line(checkpoint.name, rows) for checkpoint in bench.checkpoints)
    return StepOutcome(tuple(findings), summary, {"controls": [facts(row) for row in rows]})


def requests(bench: Workbench, checkpoint: CheckpointConfig, folder: Path) -> Iterator[tuple[str, EvaluationRequest]]:
    for control in CONTROLS:
        yield control.name, control.request(bench.problem, bench.environment, checkpoint, folder)
    before = bench.previous_checkpoint(checkpoint)
    if before is not None and os.path.isdir(bench.solution(before)):
        yield PREVIOUS, EvaluationRequest(checkpoint, bench.solution(before))


def no_verdict_findings(bench: Workbench, rows: Sequence[ControlResult]) -> Iterator[Finding]:
    """A UsageError where the reference gets no verdict either."""
    for row in rows:
        checkpoint = bench.problem.checkpoints[row.checkpoint]
        if os.path.isdir(bench.solution(checkpoint)):
            bench.sound_reference(checkpoint)
        reason = row.results.infrastructure_failure_reason or ""
        yield Finding(
            BREAKS,
            location_of_checkpoint(bench.problem, row.checkpoint),
            f"no verdict at {row.checkpoint} on {ABOUT[row.control]}: {first_line(reason)}",
            checkpoint=row.checkpoint,
            detail=first_lines(reason),
        )


def weak_test_findings(folder: Path, rows: Sequence[ControlResult]) -> Iterator[Finding]:
    """One finding for each test, at the first checkpoint where a control program passes it."""
    first: dict[str, tuple[str, TestResult]] = {}
    by: dict[str, list[ControlResult]] = defaultdict(list)
    for row in rows:
        for test in row.passed if row.control != PREVIOUS else ():
            home, _ = first.setdefault(test.nodeid, (row.checkpoint, test))
            if home == row.checkpoint:
                by[test.nodeid].append(row)
    for nodeid, (checkpoint, test) in first.items():
        controls = [row.control for row in by[nodeid]]
        weak = test.group_type is GroupType.ERROR and FAILING.issuperset(controls)
        is_core = test.group_type is GroupType.CORE and any(passes_alone(test, row) for row in by[nodeid])
        yield Finding(
            EXIT_ONLY if weak else PASSES,
            location_of_test(folder, nodeid),
            f"{shown_test(test)} ({test.group_type}) passes for {control_names(controls)}",
            own_severity=Severity.ERROR if is_core else None,
            checkpoint=checkpoint,
            test=nodeid,
        )


def passes_alone(test: TestResult, row: ControlResult) -> bool:
    """Tests of a class are steps: the first may pass, as long as another fails."""
    own = class_of(test)
    return own is None or all(step.status == "passed" for step in row.results.tests if class_of(step) == own)


def class_of(test: TestResult) -> str | None:
    before, inside, _ = test.nodeid.partition("[")[0].rpartition("::")
    return before if inside and "::" in before else None


def policy_findings(problem: ProblemConfig, rows: Sequence[ControlResult]) -> Iterator[Finding]:
    for row in rows:
        if policies := [policy for policy in STRICT if row.results.passes(policy)]:
            yield Finding(
                POLICY,
                location_of_checkpoint(problem, row.checkpoint),
                f"{row.checkpoint} is passed by {ABOUT[row.control]}, under {joined(policies)}",
                checkpoint=row.checkpoint,
            )


def nothing_new_findings(folder: Path, rows: Sequence[ControlResult]) -> Iterator[Finding]:
    """A warning where a whole group passes; for Core there is a finding about policies instead."""
    for row in rows:
        passed, total = row.results.pass_counts, row.results.total_counts
        for test in row.passed if row.control == PREVIOUS else ():
            group = test.group_type
            whole = passed[group] == total[group]
            if group is GroupType.REGRESSION or (whole and group is GroupType.CORE):
                continue
            yield Finding(
                NOTHING_NEW,
                location_of_test(folder, test.nodeid),
                f"{shown_test(test)} ({group} of {row.checkpoint}) passes for {ABOUT[PREVIOUS]}",
                own_severity=Severity.WARNING if whole else None,
                checkpoint=row.checkpoint,
                test=test.nodeid,
            )


def control_names(controls: Sequence[str]) -> str:
    if len(controls) == len(CONTROLS):
        return "every control: a submission without files, and programs that print nothing, echo or always fail"
    return joined(ABOUT[name] for name in controls)


def joined(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def summary_line(checkpoint: str, rows: Sequence[ControlResult]) -> str:
    return f"{checkpoint}: " + ", ".join(_control_summary(row) for row in rows if row.checkpoint == checkpoint)


def _control_summary(row: ControlResult) -> str:
    if row.results.infrastructure_failure:
        return f"{row.control} no verdict"
    groups = [f"{group} {passed}/{total}" for group, (passed, total) in by_group(row).items() if passed]
    which = f" ({', '.join(groups)})" if groups else ""
    return f"{row.control} {len(row.passed)}/{len(row.results.tests)}{which}"


def by_group(row: ControlResult) -> dict[str, tuple[int, int]]:
    passed, total = row.results.pass_counts, row.results.total_counts
    return {group.value: (passed[group], total[group]) for group in GroupType if total[group]}


def facts(row: ControlResult) -> dict[str, object]:
    return {
        "checkpoint": row.checkpoint,
        "control": row.control,
        "groups": {group: {"passed": passed, "total": total} for group, (passed, total) in by_group(row).items()},
        "policies": [policy.value for policy in PassPolicy if row.results.passes(policy)],
        "no_verdict": row.results.infrastructure_failure_reason,
    }


STEP = Step(
    "controls",
    "programs that solve nothing, and the previous reference, fail the tests that they must fail",
    (PASSES, EXIT_ONLY, POLICY, BREAKS, NOTHING_NEW),
    run,
)
