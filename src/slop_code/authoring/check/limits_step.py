"""Step `limits`: headroom of time, memory, processes, disk and output above the needs of the references."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import (
    failure_reason,
    first_line,
    first_lines,
    last_lines,
    shown_test,
    single_line,
)
from slop_code.authoring.check.findings import Finding, Location, Rule, Step, StepOutcome
from slop_code.authoring.check.python_sources import location_of_test
from slop_code.authoring.check.workbench import EvaluationRequest, evaluate_with_retry
from slop_code.errors import InfrastructureError
from slop_code.evaluation.context import timeout_per_test
from slop_code.evaluation.problem.problem_lookup import CONFIG, ENVIRONMENT
from slop_code.evaluation.run_tests import session_timeout
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.execution.sandbox import sandbox_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.authoring.check.workbench import ResultsOrError, Workbench
    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.execution.environment import EnvironmentSpec, Limits, TimeoutsSpec

MIN_HEADROOM = 4
SUGGESTED_FACTOR = 10
ROUND_SECONDS = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600)
"""Usual values of a timeout."""

FLOORS = {"memory": 32 << 20, "processes": 2, "disk": 4 << 20, "output": 64 << 10}
"""Lower bounds of reduced limits: with less, no program would run."""

USAGE_FIELDS = {
    "memory": "memory_bytes",
    "processes": "processes",
    "disk": "disk_bytes",
    "output": "written_bytes",
}
"""Fields of a test's usage by the limits that they count against.

What a call prints is not measured by itself: all that the submission wrote during a test is an upper bound of it."""

UNITS = (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10))

TIMEOUT = Rule.warning(
    "timeout-headroom",
    f"A test takes more than 1/{MIN_HEADROOM} of its timeout with the reference",
    "Raise `timeout` in config.yaml, or make the test quicker.",
)
SESSION = Rule.warning(
    "session-timeout-headroom",
    f"All tests together take more than 1/{MIN_HEADROOM} of session_timeout with the reference",
    "Raise `session_timeout` in config.yaml, or leave it out: there is a default that follows from `timeout`.",
    in_code=False,
)
LIMIT = Rule.warning(
    "limit-headroom",
    f"The reference needs more than 1/{MIN_HEADROOM} of a limit",
    "Raise the limit in the environment file, or make the reference use less.",
)


def suggested_timeout(slowest: float) -> int:
    """Rounded up; with room above the slowest test, as other machines are slower and busier."""
    target = SUGGESTED_FACTOR * slowest
    longest = ROUND_SECONDS[-1]
    return next((step for step in ROUND_SECONDS if step >= target), math.ceil(target / longest) * longest)


def test_seconds(test: TestResult) -> float:
    return test.duration_ms / 1000


@dataclass(frozen=True, slots=True)
class ReferenceNeeds:
    """Time and other resources that a checkpoint's reference needs, and its timeouts."""

    tests: tuple[TestResult, ...]
    """Passed tests under the checkpoint's timeout, without those that have a timeout marker."""

    timeout: float
    tests_seconds: float
    session_timeout: float
    timeouts: TimeoutsSpec
    """Those of the environment, which come before those of the problem."""

    used: Mapping[str, int]
    """The most that a test used, by the names of limits; what is unknown is left out."""

    @classmethod
    def of(cls, checkpoint: CheckpointConfig, results: CorrectnessResults, timeouts: TimeoutsSpec) -> ReferenceNeeds:
        timed = (test for test in results.tests if test.status == "passed" and "timeout" not in test.markers)
        return cls(
            tests=tuple(timed),
            timeout=timeout_per_test(checkpoint, timeouts),
            tests_seconds=results.phases["tests"],
            session_timeout=session_timeout(checkpoint, len(results.tests), timeouts),
            timeouts=timeouts,
            used=highest_use(results.tests),
        )

    @property
    def slowest(self) -> TestResult | None:
        return max(self.tests, key=test_seconds, default=None)

    @property
    def suggested(self) -> int | None:
        return suggested_timeout(test_seconds(self.slowest)) if self.slowest else None


def highest_use(tests: Iterable[TestResult]) -> dict[str, int]:
    usages = [test.usage for test in tests if test.usage is not None]
    known = {
        name: [value for usage in usages if (value := getattr(usage, field)) is not None]
        for name, field in USAGE_FIELDS.items()
    }
    return {name: max(values) for name, values in known.items() if values}


def with_reduced_limits(environment: EnvironmentSpec, names: Iterable[str]) -> EnvironmentSpec:
    """The environment with these limits reduced."""
    limits = environment.limits
    smaller = {name: reduced_limit(limits, name) for name in names}
    return environment.model_copy(update={"limits": limits.model_copy(update=smaller)})


def reducible_limits(limits: Limits) -> tuple[str, ...]:
    """The names of limits that are above their lower bounds."""
    return tuple(name for name in FLOORS if reduced_limit(limits, name) < getattr(limits, name))


def reduced_limit(limits: Limits, name: str) -> int:
    limit: int = getattr(limits, name)
    return min(limit, max(limit // MIN_HEADROOM, FLOORS[name]))


def limit_summary(limits: Limits, name: str) -> str:
    """The limit, and the reduced limit that was tried."""
    tried = limit_text(name, reduced_limit(limits, name))
    note = f"tried {tried}" if name in reducible_limits(limits) else "not tried: the minimum"
    return f"{name} {limit_text(name, getattr(limits, name))} ({note})"


def limit_text(name: str, value: int) -> str:
    """The value as in an environment file."""
    if name == "processes":
        return str(value)
    unit, size = next((pair for pair in UNITS if value >= pair[1]), ("", 1))
    return f"{value / size:.3g}{unit}" if value < 1000 * size else f"{value // size}{unit}"


def run(bench: Workbench) -> StepOutcome:
    checkpoints = bench.checkpoints_with_reference()
    reference_results = {checkpoint.name: bench.sound_reference(checkpoint) for checkpoint in checkpoints}
    config, timeouts = bench.problem.checkpoints, bench.environment.timeouts
    by_checkpoint = {
        name: ReferenceNeeds.of(config[name], results, timeouts) for name, results in reference_results.items()
    }
    headroom, limits = limit_headroom(bench), bench.environment.limits
    summary = [line for name, needs in by_checkpoint.items() for line in summary_lines(name, needs, limits)]
    return StepOutcome(
        (*slow_tests(bench.problem.path, by_checkpoint), *long_sessions(by_checkpoint), *headroom.findings),
        (*summary, *headroom.summary),
        {"checkpoints": {name: facts(needs) for name, needs in by_checkpoint.items()}, "limits": headroom.facts},
    )


def slow_tests(folder: Path, by_checkpoint: Mapping[str, ReferenceNeeds]) -> Iterator[Finding]:
    """One finding for each test, at the checkpoint with the least headroom."""
    worst: dict[str, tuple[float, str, TestResult]] = {}
    for name, needs in by_checkpoint.items():
        for test in needs.tests:
            ratio = needs.timeout / max(test_seconds(test), 0.001)
            if ratio < worst.get(test.nodeid, (MIN_HEADROOM,))[0]:
                worst[test.nodeid] = (ratio, name, test)
    for nodeid, (ratio, name, test) in worst.items():
        yield Finding(
            TIMEOUT,
            location_of_test(folder, nodeid),
            f"{shown_test(test)} takes {test_seconds(test):.1f} s with the reference of {name}; "
            f"the timeout of {by_checkpoint[name].timeout:g} s is {ratio:.1f} times that",
            f"Set {_timeout_setting(by_checkpoint[name], test)}, or make the test quicker.",
            checkpoint=name,
            test=nodeid,
        )


def _timeout_setting(needs: ReferenceNeeds, test: TestResult) -> str:
    seconds = suggested_timeout(test_seconds(test))
    return (
        f"timeouts.test: {seconds} in the environment" if needs.timeouts.test else f"timeout: {seconds} in config.yaml"
    )


def long_sessions(by_checkpoint: Mapping[str, ReferenceNeeds]) -> Iterator[Finding]:
    for name, needs in by_checkpoint.items():
        if needs.tests_seconds * MIN_HEADROOM > needs.session_timeout:
            yield Finding(
                SESSION,
                Location(CONFIG),
                f"the tests of {name} take {needs.tests_seconds:.1f} s with the reference; "
                f"the session timeout is {needs.session_timeout:g} s",
                "Raise timeouts.session in the environment." if needs.timeouts.session else "",
                checkpoint=name,
            )


def limit_headroom(bench: Workbench) -> StepOutcome:
    """Headroom of memory, processes, disk and output."""
    if sandbox_name(bench.environment) == "none":
        return StepOutcome(summary=("with isolation: none there are no limits on memory, processes, disk and output",))
    limits = bench.environment.limits
    names = reducible_limits(limits)
    findings = tuple(findings_of_limits(bench, names)) if names else ()
    text = ", ".join(limit_summary(limits, name) for name in FLOORS)
    verdict = f"with the reduced limits {'not ' if findings else ''}every reference passes"
    end = verdict if names else "nothing was tried"
    tried = {
        name: {"limit": getattr(limits, name), "tried": reduced_limit(limits, name) if name in names else None}
        for name in FLOORS
    }
    return StepOutcome(findings, (f"limits: {text}; {end}",), tried)


def findings_of_limits(bench: Workbench, names: tuple[str, ...]) -> list[Finding]:
    """First all limits are reduced together; where that is too little, each limit alone."""
    checkpoints = bench.checkpoints_with_reference()
    together = list(reduced_limit_findings(bench, [(checkpoint, names) for checkpoint in checkpoints]))
    if len(names) == 1:
        return together
    short = {finding.checkpoint for finding in together}
    single = [(checkpoint, (name,)) for checkpoint in checkpoints if checkpoint.name in short for name in names]
    alone = list(reduced_limit_findings(bench, single))
    known = {finding.checkpoint for finding in alone}
    return [*alone, *(finding for finding in together if finding.checkpoint not in known)]


def reduced_limit_findings(
    bench: Workbench, cases: Sequence[tuple[CheckpointConfig, tuple[str, ...]]]
) -> Iterator[Finding]:
    """Findings about references that do not pass with these limits reduced."""
    requests = [
        EvaluationRequest(item, bench.solution(item), environment=with_reduced_limits(bench.environment, names))
        for item, names in cases
    ]
    event = ProgressEvent(ProgressKind.EVALUATE_LIMITS, total=len(requests))
    outcomes = evaluate_with_retry(functools.partial(bench.evaluate_all, event=event), requests)
    for (checkpoint, names), outcome in zip(cases, outcomes, strict=True):
        if isinstance(outcome, InfrastructureError):
            # Raises where the machine is the cause.
            bench.evaluate(EvaluationRequest(checkpoint, bench.solution(checkpoint)))
        if short := shortage(outcome):
            yield shortage_finding(bench, checkpoint.name, names, short)


@dataclass(frozen=True, slots=True)
class Shortage:
    """The reason why reduced limits were too low."""

    reason: str
    test: TestResult | None = None
    """The first test that does not pass, if tests ran."""


def shortage(outcome: ResultsOrError) -> Shortage | None:
    """None where the reference still passes; with the full limits it does."""
    if isinstance(outcome, InfrastructureError):
        return Shortage(f"it could not be started twice in a row, and with the full limits it can: {outcome}")
    if outcome.infrastructure_failure_reason:
        return Shortage(outcome.infrastructure_failure_reason)
    first = next((test for test in outcome.tests if test.status != "passed" and not test.quarantined), None)
    return Shortage(first.failure_message or "it left no message", first) if first else None


def shortage_finding(bench: Workbench, checkpoint: str, names: Sequence[str], short: Shortage) -> Finding:
    test, limits = short.test, bench.environment.limits
    parts = [
        f"{name} {limit_text(name, reduced_limit(limits, name))} instead of {limit_text(name, getattr(limits, name))}"
        for name in names
    ]
    failed = f"{shown_test(test)} does not pass: {failure_reason(short.reason)}" if test else None
    what = failed or f"no verdict: {first_line(short.reason)}"
    more = [f"{name}: {limit_text(name, 2 * getattr(limits, name))}" for name in names]
    file = bench.environment_file or single_line(bench.named_environment or ENVIRONMENT)
    return Finding(
        LIMIT,
        location_of_test(bench.problem.path, test.nodeid) if test else Location(bench.environment_file or CONFIG),
        f"the reference of {checkpoint} with {', '.join(parts)}: {what}",
        f"Set limits: {{{', '.join(more)}}} or more in {file}, or make the reference use less.",
        checkpoint=checkpoint,
        test=test.nodeid if test else None,
        detail=last_lines(short.reason) if test else first_lines(short.reason),
    )


def summary_lines(name: str, needs: ReferenceNeeds, limits: Limits) -> Iterator[str]:
    if needs.slowest:
        seconds = test_seconds(needs.slowest)
        yield (
            f"{name}: the slowest test takes {seconds:.2f} s ({shown_test(needs.slowest)}), "
            f"the timeout is {needs.timeout:g} s ({100 * seconds / needs.timeout:.0f}%); suggested: {needs.suggested} s"
        )
    yield f"{name}: all tests take {needs.tests_seconds:.1f} s, the session timeout is {needs.session_timeout:g} s"
    if needs.used:
        yield f"{name}: the reference used at most {', '.join(use_texts(needs.used, limits))}"


def use_texts(used: Mapping[str, int], limits: Limits) -> Iterator[str]:
    for name, value in used.items():
        limit = getattr(limits, name)
        yield f"{limit_text(name, value)} of {limit_text(name, limit)} {name} ({100 * value / limit:.0f}%)"


def facts(needs: ReferenceNeeds) -> dict[str, object]:
    return {
        "slowest_test": needs.slowest.nodeid if needs.slowest else None,
        "slowest_seconds": round(test_seconds(needs.slowest), 3) if needs.slowest else None,
        "timeout": needs.timeout,
        "suggested_timeout": needs.suggested,
        "tests_seconds": round(needs.tests_seconds, 3),
        "session_timeout": needs.session_timeout,
        "used": dict(needs.used),
    }


STEP = Step(
    "limits",
    f"a timeout is suggested, and limits leave {MIN_HEADROOM} times what the references need",
    (TIMEOUT, SESSION, LIMIT),
    run,
)
