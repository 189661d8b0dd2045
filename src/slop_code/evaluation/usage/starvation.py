"""Starved tests: failures for which the machine had no processor or no memory left."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.evaluation.report import TestAttempt, TestResult
    from slop_code.evaluation.usage.resources import Usage

MAX_WAIT_SHARE = 0.25
"""Share of a time limit; a test that waited for more is not believed."""

MIN_FREE_SHARE = 0.75
"""Share of a processor; where a busy process gets less, the machine is busy with other work."""


def waited_for_others(test: TestResult | TestAttempt) -> float:
    """Seconds in which submission and judge waited for a processor that others used.

    Threads of a submission also wait for each other. That is no starvation: so no more counts than others used.
    """
    usage = test.usage
    if usage is None or test.timeout is None:
        return 0.0
    waited = _waited(usage, test.timeout.limit_s) + usage.judge_wait_s + _lost_to_host(usage)
    return min(waited, usage.others_cpu_s + usage.stolen_s)


def _waited(usage: Usage, limit_s: float) -> float:
    """Where a spawner did not answer in time, nothing of the submission was measured: all of it may be waiting.

    Without a spawner, waiting is never known.
    """
    if usage.wait_s is not None:
        return usage.wait_s
    return limit_s if usage.cpu_s is None else 0.0


def _lost_to_host(usage: Usage) -> float:
    """A process from which the host takes its processor neither runs nor waits. Each loses as it runs, on average."""
    ran = (usage.cpu_s or 0.0) + usage.judge_cpu_s
    return usage.stolen_s * ran / (ran + usage.others_cpu_s) if ran else 0.0


def is_starved(test: TestResult) -> bool:
    """True if the failure is not believed, because the machine had no processor or no memory for the test."""
    return test.status != "passed" and (lacked_memory(test) or lacked_processor(test))


def lacked_memory(test: TestResult | TestAttempt) -> bool:
    """The kernel ended a call, but for no limit of the environment."""
    return any(struck.kind == "out_of_memory" for struck in test.limits)


def lacked_processor(test: TestResult) -> bool:
    """Others had the processor when a time limit struck."""
    if test.timeout is None or _ran_too_long(test):
        return False
    return waited_for_others(test) > MAX_WAIT_SHARE * test.timeout.limit_s


def to_repeat(tests: Sequence[TestResult]) -> list[TestResult]:
    """Empty if no test is starved; else every test that did not pass.

    A test may fail for what a starved one should have left, or for a fixture that both use.
    """
    return [test for test in tests if test.status != "passed"] if any(map(is_starved, tests)) else []


def _ran_too_long(test: TestResult) -> bool:
    """The time of running alone exceeds the limit. With several calls, it is not known which of them ran for it.

    Threads run at the same time, as far as there are processors for them. The judge may run for all that a submission
    printed.
    """
    usage = test.usage
    assert test.timeout is not None
    whole = test.timeout.kind == "test" or len(test.calls) <= 1
    if not whole or usage is None or usage.cpu_s is None:
        return False
    at_once = min(usage.processes or usage.processors, usage.processors)
    return usage.cpu_s >= test.timeout.limit_s * at_once or usage.judge_cpu_s >= test.timeout.limit_s


def starvation_text(test: TestResult | TestAttempt) -> str:
    """`test` is a starved one."""
    if lacked_memory(test):
        return "lost a process to the kernel, as the machine had no memory left"
    assert test.timeout is not None
    return f"waited {waited_for_others(test):.1f} s for a processor, of a time limit of {test.timeout.limit_s:g} s"
