"""Whether time, memory, processes, disk and output leave room above what the references need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.authoring.bench import ENVIRONMENT, Trial
from slop_code.authoring.failures import first_line, first_lines, in_line, named, why
from slop_code.authoring.finding import Finding, Outcome, Place, Rule, Severity, Step
from slop_code.authoring.headroom import (
    FACTOR,
    FLOORS,
    Times,
    a_quarter,
    amount,
    divided,
    seconds,
    suggested_timeout,
)
from slop_code.authoring.sources import place_of
from slop_code.authoring.steps.reference import verdict_on
from slop_code.errors import InfrastructureError
from slop_code.execution.boxes import sandbox_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.authoring.bench import Workbench
    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.report import CorrectnessResults, TestResult

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
)
LIMIT = Rule(
    "limit-headroom",
    Severity.WARNING,
    f"The reference needs more than 1/{FACTOR} of a limit",
    "Raise the limit in the environment file, or make the reference use less.",
)
Results = dict[str, "CorrectnessResults"]


def run(bench: Workbench) -> Outcome:
    plain = {checkpoint.name: verdict_on(bench, checkpoint) for checkpoint in bench.solved()}
    if not plain:
        return Outcome(summary=("no checkpoint has a reference",))
    times = {name: Times.of(bench.problem.checkpoints[name], results) for name, results in plain.items()}
    tight, measured, about = resources(bench, plain)
    return Outcome(
        (*slow_tests(bench.problem.path, times), *long_sessions(times), *tight),
        (*[line for name, own in times.items() for line in told(name, own)], about),
        {"checkpoints": {name: facts(own) for name, own in times.items()}, "limits": measured},
    )


def slow_tests(folder: Path, times: Mapping[str, Times]) -> Iterator[Finding]:
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
            place_of(folder, nodeid),
            f"{named(test)} takes {seconds(test):.1f} s with the reference of {name}; "
            f"the timeout of {times[name].timeout:g} s is {room:.1f} times that",
            f"Set timeout: {suggested_timeout(seconds(test))} in config.yaml, or make the test quicker.",
            checkpoint=name,
            test=nodeid,
        )


def long_sessions(times: Mapping[str, Times]) -> Iterator[Finding]:
    for name, own in times.items():
        if own.whole * FACTOR > own.session_timeout:
            yield Finding(
                SESSION,
                Place("config.yaml"),
                f"the tests of {name} take {own.whole:.1f} s with the reference; "
                f"the session timeout is {own.session_timeout:g} s",
                checkpoint=name,
            )


def resources(bench: Workbench, plain: Results) -> tuple[list[Finding], dict[str, object], str]:
    """With all four at a quarter, once; only where that is too little, one at a time."""
    if sandbox_name(bench.environment) == "none":
        return [], {}, "with isolation: none there are no limits on memory, processes, disk and output"
    every = [(bench.problem.checkpoints[name], tuple(FLOORS)) for name in plain]
    together = list(tight(bench, plain, every))
    short = {finding.checkpoint for finding in together}
    each = [(one, (limit,)) for one, limits in every for limit in limits if one.name in short]
    alone = list(tight(bench, plain, each))
    told = {finding.checkpoint for finding in alone}
    findings = [*alone, *(finding for finding in together if finding.checkpoint not in told)]
    given = bench.environment.limits
    measured = {name: {"limit": getattr(given, name), "tried": tried_with(bench, name)} for name in FLOORS}
    texts = ", ".join(f"{name} {amount(name, getattr(given, name))}" for name in FLOORS)
    enough = "not all of them pass" if findings else "they pass"
    return findings, {**measured}, f"limits: {texts}; the references were run with a quarter of that, and {enough}"


def tight(
    bench: Workbench, plain: Results, wanted: Sequence[tuple[CheckpointConfig, tuple[str, ...]]]
) -> Iterator[Finding]:
    """Of the references with a quarter of these limits, those that lose something by it."""
    trials = [Trial(one, bench.solution(one), environment=divided(bench.environment, limits)) for one, limits in wanted]
    for (checkpoint, limits), tried in zip(wanted, attempt(bench, trials), strict=True):
        if fault := lost(plain[checkpoint.name], tried):
            yield too_little(bench, checkpoint.name, limits, fault)


Fault = tuple["TestResult | None", str]
"""The first test that is lost, where there is one, and why."""


def attempt(bench: Workbench, trials: Sequence[Trial]) -> list[CorrectnessResults | str]:
    """A text where not even the boxes could be opened: that, too, can be for want of memory."""
    try:
        return [*bench.evaluate_all(trials)]
    except InfrastructureError:
        return [_one(bench, trial) for trial in trials]


def _one(bench: Workbench, trial: Trial) -> CorrectnessResults | str:
    try:
        return bench.evaluate(trial)
    except InfrastructureError as error:
        return str(error)


def lost(plain: CorrectnessResults, tried: CorrectnessResults | str) -> Fault | None:
    """What the reference passes with its whole limits, and not with these."""
    if isinstance(tried, str):
        return None, tried
    if tried.infrastructure_failure_reason:
        return None, tried.infrastructure_failure_reason
    good = {test.nodeid for test in plain.tests if test.status == "passed"}
    first = next((test for test in tried.tests if test.status != "passed" and test.nodeid in good), None)
    return None if first is None else (first, first.failure_message or "it left no message")


def too_little(bench: Workbench, checkpoint: str, limits: Sequence[str], fault: Fault) -> Finding:
    test, message = fault
    own = Place(ENVIRONMENT if (bench.problem.path / ENVIRONMENT).is_file() else "config.yaml")
    given = bench.environment.limits
    parts = [
        f"{name} {amount(name, tried_with(bench, name))} instead of {amount(name, getattr(given, name))}"
        for name in limits
    ]
    what = f"{named(test)} does not pass: {why(message)}" if test else f"no verdict: {in_line(first_line(message))}"
    twice = [f"{name}: {amount(name, 2 * getattr(given, name))}" for name in limits]
    return Finding(
        LIMIT,
        place_of(bench.problem.path, test.nodeid) if test else own,
        f"the reference of {checkpoint} with {', '.join(parts)}: {what}",
        f"Set limits: {{{', '.join(twice)}}} or more in {ENVIRONMENT}, or make the reference use less.",
        checkpoint=checkpoint,
        test=test.nodeid if test else None,
        detail=first_lines(message),
    )


def tried_with(bench: Workbench, name: str) -> int:
    return a_quarter(getattr(bench.environment.limits, name), FLOORS[name])


def told(name: str, own: Times) -> Iterator[str]:
    if own.slowest:
        yield (
            f"{name}: the slowest test takes {seconds(own.slowest):.2f} s ({named(own.slowest)}), "
            f"the timeout is {own.timeout:g} s; suggested: {own.suggested} s"
        )
    yield f"{name}: all tests take {own.whole:.1f} s, the session timeout is {own.session_timeout:g} s"


def facts(own: Times) -> dict[str, object]:
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
