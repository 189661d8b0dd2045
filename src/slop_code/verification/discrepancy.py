"""Discrepancies between a stored result and what it was made of."""

from __future__ import annotations

from dataclasses import dataclass

CONTRADICTION = "contradiction"
"""The kind of a discrepancy between two files; `stored` and `raw` then name both."""


@dataclass(frozen=True, slots=True)
class Discrepancy:
    kind: str
    place: str
    stored: str
    raw: str
    """What the evidence gives instead, or what the problem has now."""
