"""Whether time, memory, processes, disk and output leave room above what the references need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import first_line, first_lines, in_line, named, why
from slop_code.authoring.check.findings import Finding, Location, Rule, Severity, Step, StepOutcome
from slop_code.authoring.check.headroom import (
    FACTOR,
    FLOORS,
    TimeHeadroom,
    about,
    amount,
    divided,
    divisible,
    seconds,
    suggested_timeout,
    tried_with,
)
from slop_code.authoring.check.python_sources import location_of_test
from slop_code.authoring.check.reference_verdict import verdict_on
from slop_code.authoring.check.workbench import EvaluationRequest, twice
from slop_code.authoring.problem_folders import CONFIG
from slop_code.errors import InfrastructureError
from slop_code.evaluation.problem_lookup import ENVIRONMENT
from slop_code.execution.sandbox import sandbox_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.authoring.check.workbench import Tried, Workbench
    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.report import TestResult

TIMEOUT = Rule(
    "timeout-headroom",
    Severity.WARNING,
    f"A test takes more than 1/{FACTOR} of its timeout with the reference",
    "Raise `timeout` in config.yaml, or make the test quicker.",
)
SESSION = Rule(
    "session-timeout-headroom",
    Severity.WARNING,
    f"All tests together take more than 1/{FACTOR} of session_timeout with the reference",
    "Raise `session_timeout` in config.yaml, or leave it out: there is a default that follows from `timeout`.",
    in_code=False,
)
LIMIT = Rule(
    "limit-headroom",
    Severity.WARNING,
    f"The reference needs more than 1/{FACTOR} of a limit",
    "Raise the limit in the environment file, or make the reference use less.",
)


def run(bench: Workbench) -> StepOutcome:
    plain = {checkpoint.name: verdict_on(bench, checkpoint) for checkpoint in bench.solved()}
    times = {name: TimeHeadroom.of(bench.problem.checkpoints[name], results) for name, results in plain.items()}
    left = room(bench)
    return StepOutcome(
        (*slow_tests(bench.problem.path, times), *long_sessions(times), *left.findings),
        (*[line for name, own in times.items() for line in told(name, own)], left.summary),
        {"checkpoints": {name: facts(own) for name, own in times.items()}, "limits": left.facts},
    )


def slow_tests(folder: Path, times: Mapping[str, TimeHeadroom]) -> Iterator[Finding]:
    """Each once, where it has the least room."""
    worst: dict[str, tuple[float, str, TestResult]] = {}
    for name, own in times.items():
        for test in own.tests:
            room = own.timeout / max(seconds(test), 0.001)
            if room < worst.get(test.nodeid, (FACTOR,))[0]:
                worst[test.nodeid] = (room, name, test)
    for nodeid, (room, name, test) in worst.items():
        yield Finding(
            TIMEOUT,
            location_of_test(folder, nodeid),
            f"{named(test)} takes {seconds(test):.1f} s with the reference of {name}; "
            f"the timeout of {times[name].timeout:g} s is {room:.1f} times that",
            f"Set timeout: {suggested_timeout(seconds(test))} in config.yaml, or make the test quicker.",
            checkpoint=name,
            test=nodeid,
        )


def long_sessions(times: Mapping[str, TimeHeadroom]) -> Iterator[Finding]:
    for name, own in times.items():
        if own.whole * FACTOR > own.session_timeout:
            yield Finding(
                SESSION,
                Location(CONFIG),
                f"the tests of {name} take {own.whole:.1f} s with the reference; "
                f"the session timeout is {own.session_timeout:g} s",
                checkpoint=name,
            )


@dataclass(frozen=True, slots=True)
class Room:
    """What is left of memory, processes, disk and output."""

    summary: str
    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)


def room(bench: Workbench) -> Room:
    if sandbox_name(bench.environment) == "none":
        return Room("with isolation: none there are no limits on memory, processes, disk and output")
    limits = bench.environment.limits
    names = divisible(limits)
    findings = tuple(shortages(bench, names)) if names else ()
    texts = ", ".join(about(limits, name) for name in FLOORS)
    end = "not every reference passes" if findings else "every reference passes"
    facts = {
        name: {"limit": getattr(limits, name), "tried": tried_with(limits, name) if name in names else None}
        for name in FLOORS
    }
    return Room(f"limits: {texts}; {f'with what was tried {end}' if names else 'nothing was tried'}", findings, facts)


def shortages(bench: Workbench, names: tuple[str, ...]) -> list[Finding]:
    """With all of them at a quarter, once; only where that is too little, one at a time."""
    together = list(with_less(bench, [(checkpoint, names) for checkpoint in bench.solved()]))
    if len(names) == 1:
        return together
    short = {finding.checkpoint for finding in together}
    alone = list(with_less(bench, [(one, (name,)) for one in bench.solved() if one.name in short for name in names]))
    known = {finding.checkpoint for finding in alone}
    return [*alone, *(finding for finding in together if finding.checkpoint not in known)]


def with_less(bench: Workbench, wanted: Sequence[tuple[CheckpointConfig, tuple[str, ...]]]) -> Iterator[Finding]:
    """Of the references with a quarter of these limits, those that do not pass."""
    trials = [
        EvaluationRequest(one, bench.solution(one), environment=divided(bench.environment, names))
        for one, names in wanted
    ]
    for (checkpoint, names), tried in zip(wanted, twice(bench.try_all, trials), strict=True):
        if isinstance(tried, InfrastructureError):
            bench.evaluate(EvaluationRequest(checkpoint, bench.solution(checkpoint)))  # raises where it is the machine
        if short := shortage(tried):
            yield too_little(bench, checkpoint.name, names, short)


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why too little was left."""

    reason: str
    test: TestResult | None = None
    """The first that does not pass, where it came to that."""


def shortage(tried: Tried) -> Shortage | None:
    """Of a reference that passes with its whole limits."""
    if isinstance(tried, InfrastructureError):
        return Shortage(f"twice it could not even be started, and with the whole limits it can: {tried}")
    if tried.infrastructure_failure_reason:
        return Shortage(tried.infrastructure_failure_reason)
    first = next((test for test in tried.tests if test.status != "passed" and not test.quarantined), None)
    return Shortage(first.failure_message or "it left no message", first) if first else None


def too_little(bench: Workbench, checkpoint: str, names: Sequence[str], short: Shortage) -> Finding:
    test, limits = short.test, bench.environment.limits
    parts = [
        f"{name} {amount(name, tried_with(limits, name))} instead of {amount(name, getattr(limits, name))}"
        for name in names
    ]
    failed = f"{named(test)} does not pass: {why(short.reason)}" if test else None
    what = failed or f"no verdict: {in_line(first_line(short.reason))}"
    more = [f"{name}: {amount(name, 2 * getattr(limits, name))}" for name in names]
    file = bench.environment_file or in_line(bench.asked or ENVIRONMENT)
    return Finding(
        LIMIT,
        location_of_test(bench.problem.path, test.nodeid) if test else Location(bench.environment_file or CONFIG),
        f"the reference of {checkpoint} with {', '.join(parts)}: {what}",
        f"Set limits: {{{', '.join(more)}}} or more in {file}, or make the reference use less.",
        checkpoint=checkpoint,
        test=test.nodeid if test else None,
        detail=first_lines(short.reason),
    )


def told(name: str, own: TimeHeadroom) -> Iterator[str]:
    if own.slowest:
        yield (
            f"{name}: the slowest test takes {seconds(own.slowest):.2f} s ({named(own.slowest)}), "
            f"the timeout is {own.timeout:g} s; suggested: {own.suggested} s"
        )
    yield f"{name}: all tests take {own.whole:.1f} s, the session timeout is {own.session_timeout:g} s"


def facts(own: TimeHeadroom) -> dict[str, object]:
    return {
        "slowest_test": own.slowest.nodeid if own.slowest else None,
        "slowest_seconds": round(seconds(own.slowest), 3) if own.slowest else None,
        "timeout": own.timeout,
        "suggested_timeout": own.suggested,
        "tests_seconds": round(own.whole, 3),
        "session_timeout": own.session_timeout,
    }


STEP = Step(
    "limits",
    "a timeout is suggested, and limits leave 4 times what the references need",
    (TIMEOUT, SESSION, LIMIT),
    run,
)
