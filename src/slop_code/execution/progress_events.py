"""Progress events: steps that may take a while, as records, of which `reporting.progress` makes English."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class ProgressKind(StrEnum):
    PULL_IMAGE = "pull_image"
    FETCH_UV = "fetch_uv"
    INSTALL_TEST_TOOLS = "install_test_tools"
    RUN_SETUP_COMMAND = "run_setup_command"
    COLLECT_TESTS = "collect_tests"
    RUN_TESTS = "run_tests"
    TESTS_DONE = "tests_done"
    CONNECT_TO_CLUSTER = "connect_to_cluster"
    CHECK_STEP = "check_step"
    EVALUATE_REFERENCE = "evaluate_reference"
    EVALUATE_MUTANTS = "evaluate_mutants"
    EVALUATE_CONTROLS = "evaluate_controls"
    EVALUATE_LIMITS = "evaluate_limits"
    REPEAT_STARVED = "repeat_starved"
    REPEAT_TESTS = "repeat_tests"
    RETRY_CONDITION = "retry_condition"
    RETRY_WITHOUT_VERDICT = "retry_without_verdict"
    RUN_TEST_ALONE = "run_test_alone"


_LONG = {
    ProgressKind.PULL_IMAGE,
    ProgressKind.FETCH_UV,
    ProgressKind.INSTALL_TEST_TOOLS,
    ProgressKind.RUN_SETUP_COMMAND,
}


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    kind: ProgressKind
    name: str = ""
    """The image, machine, packages, command, submission, check step, condition or test, depending on the kind."""

    problem: str = ""
    checkpoint: str = ""
    count: int = 0
    """Tests, evaluations or runs that are done, nodes, or the number of this step."""

    total: int = 0
    """Pairs of boxes, jobs at a time, or all that `count` counts; 0 if not known."""

    passed: int = 0
    failed: int = 0
    """Of the tests that are done; others were skipped."""

    @property
    def is_long(self) -> bool:
        """Steps that may take minutes are shown even where the others are not."""
        return self.kind in _LONG

    @property
    def is_count(self) -> bool:
        """No step, but the number of tests that are done; it comes several times a second."""
        return self.kind is ProgressKind.TESTS_DONE


ProgressCallback = Callable[[ProgressEvent], None]
"""Called by any thread, before the step begins; with TESTS_DONE, while tests run."""
