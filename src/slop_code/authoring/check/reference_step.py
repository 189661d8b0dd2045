"""Step `reference`: each reference passes every test, including those of earlier checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import (
    failure_reason,
    first_line,
    first_lines,
    last_lines,
    outcome_verb,
    shown_test,
    single_line,
)
from slop_code.authoring.check.findings import Finding, Rule, Severity, Step, StepOutcome
from slop_code.authoring.check.python_sources import location_of_checkpoint, location_of_test

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slop_code.authoring.check.workbench import Workbench
    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.report import CorrectnessResults

FAILS = Rule.error(
    "reference-fails",
    "The reference does not pass a test; a note if the test is in quarantine",
    "Fix the reference or the test. A test that is skipped or expected to fail does not pass either: remove it.",
)
NO_VERDICT = Rule.error(
    "reference-no-verdict",
    "The tests give no verdict on the reference",
    "Fix what the reason names; `slop-code problems run -v` shows what pytest prints.",
)
NOT_HANDED_OVER = Rule.error(
    "not-handed-over",
    "A test passes a path to the submission that is never handed over",
    "Pass a file or folder inside tests/ that holds data only. Of test code, pass a copy with content of its own that "
    "no test loads, or declare the file `visible`.",
)


def run(bench: Workbench) -> StepOutcome:
    checkpoints = bench.checkpoints_with_reference()
    results = {checkpoint.name: bench.reference(checkpoint) for checkpoint in checkpoints}
    findings = [
        finding for checkpoint in checkpoints for finding in findings_of(bench, checkpoint, results[checkpoint.name])
    ]
    summary = [summary_line(name, result) for name, result in results.items()]
    return StepOutcome(
        tuple(findings), tuple(summary), {"checkpoints": {name: facts(result) for name, result in results.items()}}
    )


def findings_of(bench: Workbench, checkpoint: CheckpointConfig, results: CorrectnessResults) -> Iterator[Finding]:
    folder, name = bench.problem.path, checkpoint.name
    if reason := results.infrastructure_failure_reason:
        yield Finding(
            NO_VERDICT,
            location_of_checkpoint(bench.problem, name),
            f"no verdict on the reference of {name}: {first_line(reason)}",
            checkpoint=name,
            detail=first_lines(reason),
        )
        return
    yield from refusals(folder, name, results)
    for test in results.tests:
        if test.status == "passed":
            continue
        cause = f"with the reference of {name}: {failure_reason(test.failure_message)}"
        yield Finding(
            FAILS,
            location_of_test(folder, test.nodeid),
            f"{shown_test(test)} {outcome_verb(test)} {cause}",
            own_severity=Severity.NOTE if test.quarantined else None,
            checkpoint=name,
            test=test.nodeid,
            detail=last_lines(test.failure_message),
            shared_cause=f"do not pass {cause}",
        )


def refusals(folder: Path, checkpoint: str, results: CorrectnessResults) -> Iterator[Finding]:
    for test in results.tests:
        for refused in test.refused_paths:
            path = "tests" if refused.path == "." else f"tests/{refused.path}"
            message = f"{single_line(path)} was not handed over to the submission: {refused.reason}"
            location = location_of_test(folder, test.nodeid)
            yield Finding(NOT_HANDED_OVER, location, message, checkpoint=checkpoint, test=test.nodeid)


def passed(results: CorrectnessResults) -> int:
    return sum(test.status == "passed" for test in results.tests)


def summary_line(name: str, results: CorrectnessResults) -> str:
    if results.infrastructure_failure:
        return f"{name}: no verdict"
    return f"{name}: {passed(results)} of {len(results.tests)} tests passed in {results.phases.get('tests', 0.0):.1f} s"


def facts(results: CorrectnessResults) -> dict[str, object]:
    return {
        "passed": passed(results),
        "total": len(results.tests),
        "seconds": round(results.phases.get("tests", 0.0), 3),
        "no_verdict": results.infrastructure_failure_reason,
    }


STEP = Step("reference", "each checkpoint's reference passes every test", (FAILS, NO_VERDICT, NOT_HANDED_OVER), run)
