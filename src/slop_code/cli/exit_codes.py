"""Exit statuses of `slop-code`."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.report import CorrectnessResults

EXIT_HELP = (
    "Exit status: 0 evaluated and passed, 1 evaluated and not passed, 2 wrong use or configuration, "
    "3 infrastructure failure, 130 interrupted."
)
EVAL_EXIT_HELP = EXIT_HELP.replace("130", "4 a checkpoint did not reach --stop-at, 130")


class Exit(IntEnum):
    PASSED = 0
    NOT_PASSED = 1
    USAGE = 2
    INFRASTRUCTURE = 3
    STOPPED = 4
    """A checkpoint did not reach the policy of `--stop-at`, while a run was followed."""

    INTERRUPTED = 130


def final_status(status: int, arguments: argparse.Namespace) -> int:
    """With --exit-zero, tests that did not pass do not change the status. Every other status stays."""
    return Exit.PASSED if arguments.exit_zero and status == Exit.NOT_PASSED else status


def exit_for(results: CorrectnessResults, policy: Policy) -> Exit:
    """For a part of the tests there is no verdict by a policy: every test that ran has to pass."""
    if results.infrastructure_failure:
        return Exit.INFRASTRUCTURE
    if results.partial:
        good = all(test.status == "passed" or test.quarantined for test in results.tests)
        return Exit.PASSED if good else Exit.NOT_PASSED
    return Exit.PASSED if results.passes(policy) else Exit.NOT_PASSED
