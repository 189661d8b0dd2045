"""Headline of a failure message: the line that says most."""

from __future__ import annotations

from slop_code.evaluation.failures.error_lines import error_lines, headline_text
from slop_code.reporting.text import file_safe, truncate

HEADLINE_WIDTH = 300


def headline(message: str, width: int = HEADLINE_WIDTH) -> str:
    return truncate(file_safe(headline_text(error_lines(message), width)), width)
