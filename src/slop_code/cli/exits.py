"""What the exit status says."""

from __future__ import annotations

from enum import IntEnum

from slop_code.evaluation.policy import PassPolicy
from slop_code.evaluation.report import CorrectnessResults


class Exit(IntEnum):
    PASSED = 0
    NOT_PASSED = 1
    USAGE = 2
    INFRASTRUCTURE = 3
    INTERRUPTED = 130


def exit_for(results: CorrectnessResults, policy: PassPolicy) -> Exit:
    if results.infrastructure_failure:
        return Exit.INFRASTRUCTURE
    return Exit.PASSED if results.passed[policy] else Exit.NOT_PASSED
