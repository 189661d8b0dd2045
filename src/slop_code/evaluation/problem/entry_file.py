"""Entry file of a submission: the sentence about a missing one."""

from __future__ import annotations

from slop_code._safe_text import NAME_LIMIT, escape_control


def no_entry_file(name: str) -> str:
    """A warning of the result, and where most tests failed, the cause of that."""
    shown = escape_control(name, NAME_LIMIT)
    return f"the submission has no {shown}; is this the right folder, and the right environment?"
