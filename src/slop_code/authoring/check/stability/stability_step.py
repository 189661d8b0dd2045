"""Step `stability`: repeated runs of the reference under several conditions."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from slop_code.authoring.check.failure_text import shown_test
from slop_code.authoring.check.findings import Step, StepOutcome
from slop_code.authoring.check.stability.conditions import (
    AS_IS,
    Condition,
    ConditionKind,
    conditions_for,
    run_alone,
    run_from_results,
    run_under,
    why_not_parallel,
)
from slop_code.authoring.check.stability.flips import (
    Cause,
    cause_of,
    conditions_to_repeat,
    first_odd_seed,
    flipping_tests,
    full_runs,
    usual_result,
)
from slop_code.authoring.check.stability.proofs import proof_facts, proof_lines, save_proofs
from slop_code.authoring.check.stability.stability_rules import (
    FLAKY,
    LOAD,
    PARALLEL,
    RULES,
    ObservedRuns,
    flip_findings,
    lost_verdict_findings,
    needless_quarantine_findings,
    pass_counts_text,
    undecided_group_findings,
)
from slop_code.authoring.check.workbench import reference_fault
from slop_code.errors import UsageError
from slop_code.evaluation.config import AUTO
from slop_code.evaluation.problem.quarantine import Quarantine, QuarantinedTest, quarantine_path, read_quarantine
from slop_code.evaluation.roster import unit_of
from slop_code.execution.progress_events import ProgressKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from slop_code.authoring.check.findings import Finding
    from slop_code.authoring.check.stability.conditions import ReferenceRun
    from slop_code.authoring.check.workbench import Workbench
    from slop_code.evaluation.config import CheckpointConfig

PARALLEL_FACTS = "parallel"
MAX_ALONE = 5
"""Tests of a checkpoint that are run alone, to distinguish order from chance."""


def run(bench: Workbench) -> StepOutcome:
    quarantine, checkpoints = read_quarantine(bench.problem), bench.checkpoints_with_reference()
    observed = [observe_runs(bench, checkpoint, quarantine) for checkpoint in checkpoints]
    findings = [
        *[
            finding
            for runs in observed
            for finding in (*flip_findings(bench, runs, quarantine), *lost_verdict_findings(bench, runs))
        ],
        *[finding for checkpoint in checkpoints for finding in undecided_group_findings(bench.reference(checkpoint))],
        *needless_quarantine_findings(bench, observed, quarantine),
    ]
    why_not, unit = why_not_parallel(bench.environment), bench.problem.unit
    proofs = {runs.checkpoint.name: proof_facts(runs, quarantine, unit) for runs in observed}
    summary = [
        *[line for runs in observed for line in summary_lines(runs, quarantine)],
        *(proof_lines(proofs) if bench.problem.parallel == AUTO else ()),
        *([f"not tried in parallel: {why_not}"] if why_not and observed else []),
    ]
    return StepOutcome(
        tuple(findings),
        tuple(summary),
        {
            "repeat": bench.effort.repeat,
            "seed": bench.effort.seed,
            "not_in_parallel": why_not,
            "checkpoints": {runs.checkpoint.name: facts(runs, quarantine) for runs in observed},
            PARALLEL_FACTS: proofs if bench.problem.parallel == AUTO else {},
        },
    )


def observe_runs(bench: Workbench, checkpoint: CheckpointConfig, quarantine: Quarantine) -> ObservedRuns:
    """Runs under every condition, and further runs that find the cause of a flip."""
    runs = first_runs(bench, checkpoint)
    conditions = conditions_for(bench.environment, bench.effort)
    for done, condition in enumerate(conditions):
        bench.notify(ProgressKind.REPEAT_TESTS, checkpoint, str(condition), count=done, total=len(conditions))
        runs.append(run_under(bench, checkpoint, condition))
    if any(run.lost for run in runs):
        bench.notify(ProgressKind.RETRY_WITHOUT_VERDICT, checkpoint, str(AS_IS))
        runs.append(run_under(bench, checkpoint, AS_IS))
    unknown = [test for test in flipping_tests(runs) if not quarantine.covers(test)]
    for condition in conditions_to_repeat(runs, unknown):
        bench.notify(ProgressKind.RETRY_CONDITION, checkpoint, str(condition))
        runs.append(run_under(bench, checkpoint, condition))
    runs += runs_alone(bench, checkpoint, runs, unknown)
    return ObservedRuns(checkpoint, tuple(runs))


def first_runs(bench: Workbench, checkpoint: CheckpointConfig) -> list[ReferenceRun]:
    """One plain run; two where a test fails. The same failures again are a UsageError, other ones a flip."""
    results = bench.reference(checkpoint)
    first, fault = run_from_results(AS_IS, results), reference_fault(checkpoint.name, results)
    if fault is None:
        return [first]
    again = first if first.lost else run_under(bench, checkpoint, AS_IS)
    if all(
        again.passed.get(test.nodeid) == first.passed.get(test.nodeid) for test in results.tests if not test.quarantined
    ):
        raise UsageError(fault)
    return [first, again]


def runs_alone(
    bench: Workbench, checkpoint: CheckpointConfig, runs: Sequence[ReferenceRun], tests: Sequence[str]
) -> Iterator[ReferenceRun]:
    """Order-dependent tests without the others: with the seed, and if they still flip, without it."""
    ordered = [test for test in tests if cause_of(runs, test) is Cause.ORDER]
    for test in ordered[:MAX_ALONE]:
        mates = [other for other in runs[0].passed if unit_of(other, "test") == unit_of(test, "test")]
        for seed in (first_odd_seed(runs, test), None):
            condition = Condition(ConditionKind.AS_IS if seed is None else ConditionKind.ORDER, seed)
            bench.notify(ProgressKind.RUN_TEST_ALONE, checkpoint, f"{shown_test(test)}, {condition}")
            run = run_alone(bench, checkpoint, condition, test, mates)
            yield run
            if run.passed.get(test) == usual_result(runs, test):
                break


def add_to_quarantine(bench: Workbench, findings: Iterable[Finding]) -> Path | None:
    """Adds tests that can flip in an evaluation; returns None where there is nothing to add.

    Order-dependent tests cannot, as the order of an evaluation is fixed. Parallel-dependent tests can only where the
    problem allows parallel tests.
    """
    known = read_quarantine(bench.problem)
    rules = (FLAKY, LOAD, PARALLEL) if bench.problem.fixed_pairs > 1 else (FLAKY, LOAD)
    added: dict[str, QuarantinedTest] = {}
    for finding in findings:
        test = finding.test
        if finding.rule in rules and test and not known.covers(test):
            added.setdefault(test, _entry(test, f"{finding.rule.id}: {finding.measured}"))
    if not added:
        return None
    path = quarantine_path(bench.problem)
    Quarantine(tests=tuple(sorted((*known.tests, *added.values()), key=lambda entry: entry.test))).save(path)
    return path


def record_proofs(bench: Workbench, outcome: StepOutcome) -> Path | None:
    """Writes the proofs that this step has made, if config.yaml asks for them; None where nothing changed."""
    return save_proofs(bench.problem, outcome.facts[PARALLEL_FACTS]) if outcome.facts.get(PARALLEL_FACTS) else None


def _entry(test: str, reason: str) -> QuarantinedTest:
    try:
        return QuarantinedTest(test=test, reason=reason)
    except ValidationError as error:
        raise UsageError(
            f"{shown_test(test)}: the quarantine cannot hold this name; rename the test or its file"
        ) from error


def summary_lines(observed: ObservedRuns, quarantine: Quarantine) -> Iterator[str]:
    name, runs = observed.checkpoint.name, observed.runs
    kinds = Counter(run.condition.kind for run in runs if run.alone is None)
    odd = flipping_tests(runs)
    how_often = ", ".join(f"{kinds[kind]} {kind}" for kind in ConditionKind if kinds[kind])
    yield f"{name}: runs: {how_often}; {len(odd)} of {len(runs[0].passed)} tests flip"
    for test in odd:
        if quarantine.covers(test):
            yield f"{name}: in quarantine: {shown_test(test)} {pass_counts_text(runs, test)}"


def facts(observed: ObservedRuns, quarantine: Quarantine) -> dict[str, Any]:
    runs = observed.runs
    return {
        "runs": dict(Counter(str(run.condition.kind) for run in runs if run.alone is None)),
        "flips": {
            test: {
                "cause": cause_of(runs, test),
                "quarantined": quarantine.covers(test),
                "conditions": _by_condition(runs, test),
            }
            for test in flipping_tests(runs)
        },
        "seconds": {test: _spread(runs, test) for test in runs[0].passed},
    }


def _by_condition(runs: Sequence[ReferenceRun], test: str) -> dict[str, dict[str, int]]:
    matching = full_runs(runs, test)
    count = Counter(str(run.condition) for run in matching)
    passed = Counter(str(run.condition) for run in matching if run.passed[test])
    return {name: {"runs": count[name], "passed": passed[name]} for name in count}


def _spread(runs: Sequence[ReferenceRun], test: str) -> dict[str, float]:
    """Only plain runs count."""
    seconds = [run.seconds[test] for run in full_runs(runs, test, ConditionKind.AS_IS)]
    return {"min": round(min(seconds), 4), "median": round(median(seconds), 4), "max": round(max(seconds), 4)}


STEP = Step(
    "stability",
    "the reference gives the same results again, in another order, on a busy machine and in parallel",
    RULES,
    run,
)
