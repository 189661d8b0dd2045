"""English for progress events."""

from __future__ import annotations

from slop_code.execution.progress_events import ProgressEvent, ProgressKind

TEXTS = {
    ProgressKind.PULL_IMAGE: "pulling {event.name}",
    ProgressKind.FETCH_UV: "fetching uv for containers on {event.name}",
    ProgressKind.INSTALL_TEST_TOOLS: "warming the test tools ({event.name})",
    ProgressKind.RUN_SETUP_COMMAND: "set-up: {event.name}",
    ProgressKind.COLLECT_TESTS: "collecting the tests of {event.problem} {event.checkpoint}",
    ProgressKind.RUN_TESTS: "running {event.count} tests",
    ProgressKind.TESTS_DONE: "{event.count}/{event.total} tests, {event.passed} passed, {event.failed} failed",
    ProgressKind.CONNECT_TO_CLUSTER: "connected to {event.name}: {event.count} nodes, {event.total} jobs at a time",
    ProgressKind.CHECK_STEP: "step {event.count} of {event.total}: {event.name}",
    ProgressKind.EVALUATE_REFERENCE: "reference of {event.checkpoint}",
    ProgressKind.EVALUATE_MUTANTS: "{event.checkpoint}, {done_of_total} mutants tried",
    ProgressKind.EVALUATE_CONTROLS: "{done_of_total} programs tried that solve nothing",
    ProgressKind.EVALUATE_LIMITS: "{done_of_total} references tried with lower limits",
    ProgressKind.REPEAT_STARVED: "alone, as the machine was busy: {event.count} tests",
    ProgressKind.REPEAT_TESTS: "{event.checkpoint}, run {next_number} of {event.total}: {event.name}",
    ProgressKind.RETRY_CONDITION: "{event.checkpoint}, again: {event.name}",
    ProgressKind.RETRY_WITHOUT_VERDICT: "{event.checkpoint}, again after a run without a verdict: {event.name}",
    ProgressKind.RUN_TEST_ALONE: "{event.checkpoint}, alone: {event.name}",
}


def progress_text(event: ProgressEvent) -> str:
    """One line; names in it come from others and are not escaped."""
    pairs = f" in {event.total} pairs" if event.kind is ProgressKind.RUN_TESTS and event.total > 1 else ""
    done_of_total = f"{event.count} of {event.total}" if event.total else str(event.count)
    facts = {"event": event, "done_of_total": done_of_total, "next_number": event.count + 1}
    return TEXTS[event.kind].format_map(facts) + pairs
