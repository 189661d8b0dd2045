"""Lists of known names for messages, and the known name that a misspelt one may stand for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NUMBER = re.compile(r"[0-9]+")
SHOWN_NAMES = 20
MIN_RATIO = 0.7
"""Similarity of a word that may be meant, from 0 to 1."""

MAX_COMPARED = 100
"""Characters of words that are compared with known ones: longer ones take long."""


def first_names(names: Sequence[str], limit: int) -> str:
    """For a message: the first names, and the number of the others."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like this one; None where no other is, or two are so to the same degree.

    A word with another number is another word.
    """
    import difflib

    if len(word) > MAX_COMPARED:
        return None
    skeleton = NUMBER.sub("0", word)
    names = {name for name in known if len(name) <= MAX_COMPARED and NUMBER.sub("0", name) != skeleton}
    ratios = sorted((difflib.SequenceMatcher(None, name.lower(), word.lower()).ratio(), name) for name in names)
    best, second = ratios[-1:], ratios[-2:-1]
    is_clear = best and best[0][0] >= MIN_RATIO and (not second or second[0][0] < best[0][0])
    return best[0][1] if is_clear else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word; empty where no known word is like it."""
    near = nearest(word, known)
    return f"; did you mean {str(near)!r}?" if near is not None else ""


def near_or_known(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the one that may be meant, else all that are known."""
    names = list(known)
    return did_you_mean(word, names) or f"; {known_names(names)}"


def known_names(names: Sequence[str]) -> str:
    """Part of a message: that there are none, the only one, or the first of several."""
    return f"there {'is' if len(names) == 1 else 'are'} {first_names(names, SHOWN_NAMES) or 'none'}"
