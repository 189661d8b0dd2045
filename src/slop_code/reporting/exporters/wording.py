"""What the formats say alike. All text is bounded, with control characters made visible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.evaluation.reports.record import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.evaluation.report import TestResult
    from slop_code.runs.lines import CheckpointLine

LIMIT = 64 * 1024
"""Bytes of one text."""
HEADLINE = 300


def safe(text: str) -> str:
    """Nothing in it that a terminal obeys or that XML cannot hold."""
    if len(text) <= LIMIT // 4 and text.isprintable():  # as nearly every name is
        return text
    shown = visible(text, LIMIT)
    return shown.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def headline(message: str) -> str:
    """The line that says most: pytest's first `E`, else the first that is not empty."""
    lines = message.split("\n")
    told = [line[1:].strip() for line in lines if line.startswith("E ")]
    said = safe(next((line for line in [*told, *map(str.strip, lines)] if line), ""))
    return said if len(said) <= HEADLINE else f"{said[:HEADLINE]} [...]"


def counts(line: CheckpointLine) -> bool:
    """Where there is no verdict, no test is told as passed or failed."""
    return line.state == "evaluated"


def no_verdict(line: CheckpointLine) -> str:
    return safe(f"no verdict: {line.reason or line.state}")


def described(test: TestResult) -> str:
    """The whole message, and below it what the test ran."""
    ran = [f"ran: {call}" for call in test.calls]
    return safe("\n".join([test.failure_message or "", *ran]).strip("\n"))


def split_id(test: TestResult) -> tuple[str, str]:
    """`("tests.a.TestB", "test_c[x::y]")`: where the test stands, and its name with its parameters."""
    head, bracket, parameters = test.id.partition("[")
    *classes, name = head.split("::")
    place: Sequence[str] = [test.file_path.removesuffix(".py").replace("/", "."), *classes]
    return safe(".".join(place)), safe(name + bracket + parameters)
