"""Whether the reference's results stay the same: again, in another order, on a busy machine, in parallel."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Any

from slop_code.authoring.check.failure_text import named
from slop_code.authoring.check.findings import Step, StepOutcome
from slop_code.authoring.check.reference_verdict import unsound
from slop_code.authoring.check.stability.conditions import (
    AS_IS,
    Condition,
    ConditionKind,
    conditions_for,
    left_out,
    run_alone,
    run_of,
    run_under,
)
from slop_code.authoring.check.stability.flips import Cause, cause_of, flipping, seed_of, to_try_again, usual, whole
from slop_code.authoring.check.stability.stability_rules import (
    RULES,
    ObservedRuns,
    counted,
    lost_verdicts,
    needless,
    undecided,
    unstable,
)
from slop_code.authoring.check.workbench import EvaluationRequest
from slop_code.errors import UsageError
from slop_code.evaluation.pairs import unit_of
from slop_code.evaluation.quarantine import read_ledger
from slop_code.execution.progress_events import ProgressEvent, ProgressKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.authoring.check.stability.conditions import ReferenceRun
    from slop_code.authoring.check.workbench import Workbench
    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.quarantine import Ledger

MOST_ALONE = 5
"""Tests of a checkpoint that are run by themselves, to tell order from chance."""


def run(bench: Workbench) -> StepOutcome:
    ledger, solved = read_ledger(bench.problem), bench.solved()
    seen = [observe(bench, checkpoint, ledger) for checkpoint in solved]
    findings = [
        *[finding for one in seen for finding in (*unstable(bench, one, ledger), *lost_verdicts(bench, one))],
        *[finding for checkpoint in solved for finding in undecided(bench.reference(checkpoint))],
        *needless(bench, seen, ledger),
    ]
    why_not = left_out(bench.environment)
    summary = [
        *[line for one in seen for line in told(one, ledger)],
        *([f"not tried in parallel: {why_not}"] if why_not and seen else []),
    ]
    return StepOutcome(
        tuple(findings),
        tuple(summary),
        {
            "repeat": bench.effort.repeat,
            "seed": bench.effort.seed,
            "not_in_parallel": why_not,
            "checkpoints": {one.checkpoint.name: facts(one, ledger) for one in seen},
        },
    )


def observe(bench: Workbench, checkpoint: CheckpointConfig, ledger: Ledger) -> ObservedRuns:
    """Under every condition, and then again where something flipped: what decides it?"""
    runs = first_runs(bench, checkpoint)
    conditions = conditions_for(bench.environment, bench.effort)
    for number, condition in enumerate(conditions, start=1):
        bench.progress(
            ProgressEvent(
                ProgressKind.REPEAT_TESTS,
                str(condition),
                checkpoint=checkpoint.name,
                count=number,
                total=len(conditions),
            )
        )
        runs.append(run_under(bench, checkpoint, condition))
    if any(run.lost for run in runs):
        bench.progress(ProgressEvent(ProgressKind.RETRY_WITHOUT_VERDICT, str(AS_IS), checkpoint=checkpoint.name))
        runs.append(run_of(AS_IS, bench.evaluate(EvaluationRequest(checkpoint, bench.solution(checkpoint)))))
    unknown = [test for test in flipping(runs) if not ledger.covers(test)]
    for condition in to_try_again(runs, unknown):
        bench.progress(ProgressEvent(ProgressKind.RETRY_CONDITION, str(condition), checkpoint=checkpoint.name))
        runs.append(run_under(bench, checkpoint, condition))
    runs += alone(bench, checkpoint, runs, unknown)
    return ObservedRuns(checkpoint, tuple(runs))


def first_runs(bench: Workbench, checkpoint: CheckpointConfig) -> list[ReferenceRun]:
    """As it is; twice where a test fails. With the same results again nothing can be said, else that is a flip."""
    results = bench.reference(checkpoint)
    first, fault = run_of(AS_IS, results), unsound(checkpoint.name, results)
    if fault is None:
        return [first]
    again = first if first.lost else run_under(bench, checkpoint, AS_IS)
    if all(
        again.passed.get(test.nodeid) == first.passed.get(test.nodeid) for test in results.tests if not test.quarantined
    ):
        raise UsageError(fault)
    return [first, again]


def alone(
    bench: Workbench, checkpoint: CheckpointConfig, runs: Sequence[ReferenceRun], tests: Sequence[str]
) -> Iterator[ReferenceRun]:
    """Those that flip in another order each time, without the others: with the seed, and if they flip so, without."""
    ordered = [test for test in tests if cause_of(runs, test) is Cause.ORDER]
    for test in ordered[:MOST_ALONE]:
        mates = [one for one in runs[0].passed if unit_of(one, "test") == unit_of(test, "test")]
        for seed in (seed_of(runs, test), None):
            condition = Condition(ConditionKind.AS_IS if seed is None else ConditionKind.ORDER, seed)
            bench.progress(
                ProgressEvent(ProgressKind.RUN_TEST_ALONE, str(condition), checkpoint=checkpoint.name, test=named(test))
            )
            found = run_alone(bench, checkpoint, condition, test, mates)
            yield found
            if found.passed.get(test) == usual(runs, test):
                break


def told(observed: ObservedRuns, ledger: Ledger) -> Iterator[str]:
    name, runs = observed.checkpoint.name, observed.runs
    kinds = Counter(run.condition.kind for run in runs if run.alone is None)
    odd = flipping(runs)
    how_often = ", ".join(f"{kinds[kind]} {kind}" for kind in ConditionKind if kinds[kind])
    yield f"{name}: runs: {how_often}; {len(odd)} of {len(runs[0].passed)} tests flip"
    for test in odd:
        if ledger.covers(test):
            yield f"{name}: in quarantine: {named(test)} {counted(runs, test)}"


def facts(observed: ObservedRuns, ledger: Ledger) -> dict[str, Any]:
    runs = observed.runs
    return {
        "runs": dict(Counter(str(run.condition.kind) for run in runs if run.alone is None)),
        "flips": {
            test: {
                "cause": cause_of(runs, test),
                "quarantined": ledger.covers(test),
                "conditions": _by_condition(runs, test),
            }
            for test in flipping(runs)
        },
        "seconds": {test: _spread(runs, test) for test in runs[0].passed},
    }


def _by_condition(runs: Sequence[ReferenceRun], test: str) -> dict[str, dict[str, int]]:
    told = whole(runs, test)
    count = Counter(str(run.condition) for run in told)
    passed = Counter(str(run.condition) for run in told if run.passed[test])
    return {name: {"runs": count[name], "passed": passed[name]} for name in count}


def _spread(runs: Sequence[ReferenceRun], test: str) -> dict[str, float]:
    """Over the runs as it is."""
    found = [run.seconds[test] for run in whole(runs, test, ConditionKind.AS_IS)]
    return {"min": round(min(found), 4), "median": round(median(found), 4), "max": round(max(found), 4)}


STEP = Step(
    "stability",
    "the reference gives the same results again, in another order, on a busy machine and in parallel",
    RULES,
    run,
)
