"""Starvation: time limits that struck while the submission waited for a processor that others had."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slop_code.evaluation.report import TestAttempt, TestResult

MATERIAL_SHARE = 0.25
"""Of a time limit: a test that waited for less is believed."""

FREE_SHARE = 0.75
"""Of a processor: a machine on which a busy process gets less is busy with the work of others."""


def waited_for_others(test: TestResult | TestAttempt) -> float:
    """Seconds in which submission and judge waited for a processor that others used.

    Threads of a submission also wait for each other. That is no starvation: so no more counts than others used.
    """
    usage = test.usage
    if usage is None or usage.wait_s is None:
        return 0.0
    return min(usage.wait_s + usage.judge_wait_s, usage.others_cpu_s)


def is_starved(test: TestResult) -> bool:
    """Whether the time limit that ended the test is not believed."""
    if test.status == "passed" or test.timeout is None or _ran_too_long(test):
        return False
    return waited_for_others(test) > MATERIAL_SHARE * test.timeout.limit_s


def _ran_too_long(test: TestResult) -> bool:
    """The time of running alone exceeds the limit. With several calls, it is not known which of them ran for it."""
    assert test.timeout is not None
    whole = test.timeout.kind == "test" or len(test.calls) <= 1
    ran = test.usage.cpu_s if test.usage is not None else None
    return whole and ran is not None and ran >= test.timeout.limit_s


def starvation_text(test: TestResult | TestAttempt) -> str:
    assert test.timeout is not None
    return f"waited {waited_for_others(test):.1f} s for a processor, of a time limit of {test.timeout.limit_s:g} s"
