"""English for progress events."""

from __future__ import annotations

from slop_code.execution.progress_events import ProgressEvent, ProgressKind


def progress_text(event: ProgressEvent) -> str:
    """One line; names in it come from others and are not escaped."""
    match event.kind:
        case ProgressKind.PULL_IMAGE:
            return f"pulling {event.name}"
        case ProgressKind.FETCH_UV:
            return f"fetching uv for containers on {event.name}"
        case ProgressKind.BUILD_TEST_ENVIRONMENT:
            return f"warming the test environment ({event.name})"
        case ProgressKind.RUN_SETUP_COMMAND:
            return f"set-up: {event.name}"
        case ProgressKind.COLLECT_TESTS:
            return f"collecting the tests of {event.problem} {event.checkpoint}"
        case ProgressKind.RUN_TESTS:
            return f"running {event.count} tests" + (f" in {event.total} pairs" if event.total > 1 else "")
        case ProgressKind.CONNECT_TO_CLUSTER:
            return f"connected to {event.name}: {event.count} nodes, {event.total} jobs at a time"
        case _:
            return _checking(event)


def _checking(event: ProgressEvent) -> str:
    """The steps of `problems check`."""
    match event.kind:
        case ProgressKind.CHECK_STEP:
            return f"checking {event.problem}: {event.name}"
        case ProgressKind.EVALUATE_REFERENCE:
            return f"reference of {event.problem} {event.checkpoint}"
        case ProgressKind.EVALUATE_MUTANTS:
            return f"{event.checkpoint}: {event.count} mutants tried"
        case ProgressKind.EVALUATE_CONTROLS:
            return f"{event.checkpoint}: programs that solve nothing"
        case ProgressKind.REPEAT_TESTS:
            return f"{event.checkpoint}, run {event.count} of {event.total}: {event.name}"
        case ProgressKind.RETRY_CONDITION:
            return f"{event.checkpoint}, again: {event.name}"
        case ProgressKind.RETRY_WITHOUT_VERDICT:
            return f"{event.checkpoint}, again after a run without a verdict: {event.name}"
        case ProgressKind.RUN_TEST_ALONE:
            return f"{event.checkpoint}, alone: {event.test}, {event.name}"
    raise ValueError(f"no text for {event.kind}")
