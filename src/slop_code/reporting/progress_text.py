"""English for progress events."""

from __future__ import annotations

from slop_code.execution.progress_events import ProgressEvent, ProgressKind

TEXTS = {
    ProgressKind.PULL_IMAGE: "pulling {0.name}",
    ProgressKind.FETCH_UV: "fetching uv for containers on {0.name}",
    ProgressKind.INSTALL_TEST_TOOLS: "warming the test tools ({0.name})",
    ProgressKind.RUN_SETUP_COMMAND: "set-up: {0.name}",
    ProgressKind.COLLECT_TESTS: "collecting the tests of {0.problem} {0.checkpoint}",
    ProgressKind.RUN_TESTS: "running {0.count} tests",
    ProgressKind.CONNECT_TO_CLUSTER: "connected to {0.name}: {0.count} nodes, {0.total} jobs at a time",
    ProgressKind.CHECK_STEP: "checking {0.problem}: {0.name}",
    ProgressKind.EVALUATE_REFERENCE: "reference of {0.problem} {0.checkpoint}",
    ProgressKind.EVALUATE_MUTANTS: "{0.checkpoint}: {0.count} mutants tried",
    ProgressKind.EVALUATE_CONTROLS: "{0.checkpoint}: programs that solve nothing",
    ProgressKind.REPEAT_STARVED: "alone, as the machine was busy: {0.count} tests",
    ProgressKind.REPEAT_TESTS: "{0.checkpoint}, run {0.count} of {0.total}: {0.name}",
    ProgressKind.RETRY_CONDITION: "{0.checkpoint}, again: {0.name}",
    ProgressKind.RETRY_WITHOUT_VERDICT: "{0.checkpoint}, again after a run without a verdict: {0.name}",
    ProgressKind.RUN_TEST_ALONE: "{0.checkpoint}, alone: {0.name}",
}


def progress_text(event: ProgressEvent) -> str:
    """One line; names in it come from others and are not escaped."""
    pairs = f" in {event.total} pairs" if event.kind is ProgressKind.RUN_TESTS and event.total > 1 else ""
    return TEXTS[event.kind].format(event) + pairs
