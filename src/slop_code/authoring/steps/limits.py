"""Whether time, memory, processes, disk and output leave room above what the references need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.authoring import headroom
from slop_code.authoring.bench import ENVIRONMENT, Trial
from slop_code.authoring.failures import first_line, first_lines, in_line, named, why
from slop_code.authoring.finding import Finding, Outcome, Place, Rule, Severity, Step
from slop_code.authoring.headroom import FACTOR, FLOORS, amount, seconds
from slop_code.authoring.sources import place_of
from slop_code.authoring.steps.reference import verdict_on
from slop_code.errors import InfrastructureError
from slop_code.execution.boxes import sandbox_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
    tight, measured, about = resources(bench, plain)
    return Outcome(
        (*slow_tests(bench, plain), *long_sessions(bench, plain), *tight),
        (*[line for name in plain for line in times(bench, name, plain[name])], about),
        {"checkpoints": {name: facts(bench, name, plain[name]) for name in plain}, "limits": measured},
    )


def slow_tests(bench: Workbench, plain: Results) -> Iterator[Finding]:
    """Each once, where it has the least room."""
    worst: dict[str, tuple[float, TestResult, CheckpointConfig]] = {}
    for name, results in plain.items():
        checkpoint = bench.problem.checkpoints[name]
        for test in headroom.timed(results):
            room = checkpoint.timeout / max(seconds(test), 0.001)
            if room < FACTOR and room < worst.get(test.nodeid, (FACTOR,))[0]:
                worst[test.nodeid] = (room, test, checkpoint)
    for nodeid, (room, test, checkpoint) in worst.items():
        yield Finding(
            TIMEOUT,
            place_of(bench.problem.path, nodeid),
            f"{named(test)} takes {seconds(test):.1f} s with the reference of {checkpoint.name}; "
            f"the timeout of {checkpoint.timeout:g} s is {room:.1f} times that",
            f"Set timeout: {headroom.suggested_timeout(seconds(test))} in config.yaml, or make the test quicker.",
            checkpoint=checkpoint.name,
            test=nodeid,
        )


def long_sessions(bench: Workbench, plain: Results) -> Iterator[Finding]:
    for name, results in plain.items():
        allowed, taken = headroom.whole_session(bench.problem.checkpoints[name], results), results.phases["tests"]
        if headroom.is_short(allowed, taken):
            yield Finding(
                SESSION,
                Place("config.yaml"),
                f"the tests of {name} take {taken:.1f} s with the reference; the session timeout is {allowed:g} s",
                checkpoint=name,
            )


def resources(bench: Workbench, plain: Results) -> tuple[list[Finding], dict[str, object], str]:
    """With all four at a quarter, once; only where that is too little, one at a time."""
    if sandbox_name(bench.environment) == "none":
        return [], {}, "with isolation: none there are no limits on memory, processes, disk and output"
    checkpoints = [bench.problem.checkpoints[name] for name in plain]
    together = attempt(bench, [(one, tuple(FLOORS)) for one in checkpoints])
    short = [one for one, tried in zip(checkpoints, together, strict=True) if lost(plain[one.name], tried)]
    each = [(one, (limit,)) for one in short for limit in FLOORS]
    alone = attempt(bench, each)
    findings = [
        tight(bench, one, limits, fault)
        for (one, limits), tried in zip(each, alone, strict=True)
        if (fault := lost(plain[one.name], tried))
    ]
    told = {finding.checkpoint for finding in findings}
    for one, tried in zip(checkpoints, together, strict=True):
        if one.name not in told and (fault := lost(plain[one.name], tried)):
            findings.append(tight(bench, one, tuple(FLOORS), fault))
    given = bench.environment.limits
    measured = {name: {"limit": getattr(given, name), "tried": tried_with(bench, name)} for name in FLOORS}
    texts = ", ".join(f"{name} {amount(name, getattr(given, name))}" for name in FLOORS)
    enough = "not all of them pass" if findings else "they pass"
    return findings, {**measured}, f"limits: {texts}; the references were run with a quarter of that, and {enough}"


Fault = tuple["TestResult | None", str]
"""The first test that is lost, where there is one, and why."""


def attempt(
    bench: Workbench, wanted: Sequence[tuple[CheckpointConfig, tuple[str, ...]]]
) -> list[CorrectnessResults | str]:
    """A text where not even the boxes could be opened: that, too, can be for want of memory."""
    trials = [
        Trial(one, bench.solution(one), environment=headroom.divided(bench.environment, limits))
        for one, limits in wanted
    ]
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


def tight(bench: Workbench, checkpoint: CheckpointConfig, limits: Sequence[str], fault: Fault) -> Finding:
    test, message = fault
    own = Place(ENVIRONMENT if (bench.problem.path / ENVIRONMENT).is_file() else "config.yaml")
    given = bench.environment.limits
    parts = [f"{name} at {amount(name, tried_with(bench, name))}" for name in limits]
    what = f"{named(test)} does not pass: {why(message)}" if test else f"no verdict: {in_line(first_line(message))}"
    doubled = ", ".join(f"{name}: {amount(name, 2 * getattr(given, name))}" for name in limits)
    return Finding(
        LIMIT,
        place_of(bench.problem.path, test.nodeid) if test else own,
        f"the reference of {checkpoint.name} with {', '.join(parts)}, a quarter of the limit: {what}",
        f"Set limits: {{{doubled}}} or more in {ENVIRONMENT}, or make the reference use less.",
        checkpoint=checkpoint.name,
        test=test.nodeid if test else None,
        detail=first_lines(message),
    )


def tried_with(bench: Workbench, name: str) -> int:
    return headroom.a_quarter(getattr(bench.environment.limits, name), FLOORS[name])


def times(bench: Workbench, name: str, results: CorrectnessResults) -> Iterator[str]:
    found = facts(bench, name, results)
    if found["slowest_test"] is not None:
        yield (
            f"{name}: the slowest test takes {found['slowest_seconds']} s ({named(str(found['slowest_test']))}), "
            f"the timeout is {found['timeout']} s; suggested: {found['suggested_timeout']} s"
        )
    yield f"{name}: all tests take {found['tests_seconds']} s, the session timeout is {found['session_timeout']} s"


def facts(bench: Workbench, name: str, results: CorrectnessResults) -> Mapping[str, object]:
    checkpoint = bench.problem.checkpoints[name]
    slowest = max(headroom.timed(results), key=seconds, default=None)
    return {
        "slowest_test": slowest.nodeid if slowest else None,
        "slowest_seconds": round(seconds(slowest), 3) if slowest else None,
        "timeout": checkpoint.timeout,
        "suggested_timeout": headroom.suggested_timeout(seconds(slowest)) if slowest else None,
        "tests_seconds": round(results.phases["tests"], 3),
        "session_timeout": headroom.whole_session(checkpoint, results),
    }


STEP = Step(
    "limits",
    "a timeout is suggested, and limits leave 4 times what the references need",
    (TIMEOUT, SESSION, LIMIT),
    run,
)
