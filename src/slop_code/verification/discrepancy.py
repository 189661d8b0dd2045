"""One thing in which a stored result is not what it was made of."""

from __future__ import annotations

from dataclasses import dataclass

CONTRADICTION = "contradiction"
"""The kind of what two files say differently; `stored` and `raw` then name both."""


@dataclass(frozen=True, slots=True)
class Finding:
    kind: str
    place: str
    stored: str
    raw: str
    """What the raw reports say instead; of a problem, what it has now."""
