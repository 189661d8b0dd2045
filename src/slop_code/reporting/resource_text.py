"""Texts about what a test used, and about the limits that struck."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.evaluation.usage.starvation import lacked_memory, starvation_text
from slop_code.reporting.text import format_size, one_line, plural

if TYPE_CHECKING:
    from slop_code.evaluation.report import TestAttempt, TestResult
    from slop_code.evaluation.usage.resources import LimitKind, StruckLimit, TestTimeout, Usage
    from slop_code.runs.checkpoint_lines import CheckpointFacts

_NAMES: dict[LimitKind, str] = {
    "memory": "memory",
    "processes": "processes",
    "disk": "disk",
    "output": "output of a call",
    "out_of_memory": "memory of the machine or the container (killed by the kernel)",
}


def limit_lines(test: TestResult) -> list[str]:
    """A line for each limit that struck a test that did not pass; the time limit is the last."""
    if test.status == "passed":
        return []
    calls = (f", in {one_line(struck.call)}" if struck.call else "" for struck in test.limits)
    lines = [f"{_limit_text(struck)}{call}" for struck, call in zip(test.limits, calls, strict=True)]
    return lines if test.timeout is None else [*lines, _timeout_text(test.timeout)]


def first_limit(test: TestResult) -> str | None:
    """The first of these lines without the call, so that it is the same for all tests that the limit struck."""
    if test.status == "passed":
        return None
    if test.limits:
        return _limit_text(test.limits[0])
    return None if test.timeout is None else _timeout_text(test.timeout)


def failure_note(facts: CheckpointFacts) -> str:
    """Reason of a checkpoint that failed as a whole: its set-up failed, or limits struck. Empty if neither is so."""
    if facts.setup_failure:
        return one_line(facts.setup_failure)
    counts = [(_NAMES[kind], count) for kind, count in facts.limits.items()]
    counts += [("time", facts.timeouts)] if facts.timeouts else []
    struck = ", ".join(f"{name} in {plural(count, 'test')}" for name, count in counts)
    return f"limits struck: {struck}" if struck else ""


def attempt_lines(test: TestResult) -> list[str]:
    """A line for each attempt that is not believed."""
    return [f"ran again, alone: at first it {_attempt_text(attempt)}" for attempt in test.attempts]


def _attempt_text(attempt: TestAttempt) -> str:
    if attempt.timeout is None and not lacked_memory(attempt):
        return "did not pass while another test was starved"
    return starvation_text(attempt)


def _limit_text(struck: StruckLimit) -> str:
    value = "" if struck.limit is None else f" of {_value(struck.kind, struck.limit)}"
    return f"limit struck: {_NAMES[struck.kind]}{value}"


def _timeout_text(timeout: TestTimeout) -> str:
    whose = "the checkpoint's timeout" if timeout.kind == "test" else "a time limit in the test"
    return f"limit struck: {whose} of {timeout.limit_s:g} s"


def _value(kind: LimitKind, value: int) -> str:
    return str(value) if kind == "processes" else format_size(value)


def usage_text(usage: Usage) -> str:
    """A line with what is known of it."""
    facts = []
    if usage.cpu_s is not None:
        facts.append(f"{usage.cpu_s:.2f} s of processor time")
    if usage.wait_s is not None:
        facts.append(f"{usage.wait_s:.2f} s waiting for a processor")
    if usage.memory_bytes is not None:
        facts.append(f"{format_size(usage.memory_bytes)} of memory")
    if usage.processes is not None:
        facts.append("1 process" if usage.processes == 1 else f"{usage.processes} processes")
    if usage.written_bytes is not None:
        facts.append(f"{format_size(usage.written_bytes)} written")
    if usage.disk_bytes is not None:
        facts.append(f"{format_size(usage.disk_bytes)} of disk")
    return f"submission used: {', '.join(facts) or 'unknown'}"


def resource_text(test: TestResult) -> str:
    """All of it, for a test that did not pass; empty if nothing is known."""
    used = [usage_text(test.usage)] if test.usage is not None and test.status != "passed" else []
    return "\n".join([*attempt_lines(test), *limit_lines(test), *used])
