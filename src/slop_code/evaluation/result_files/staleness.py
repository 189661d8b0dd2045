"""Staleness of a stored result: inputs that changed, and the version of the rules."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from slop_code._io import digest_of
from slop_code.evaluation.command import LOCK, judge_sources

if TYPE_CHECKING:
    from slop_code.evaluation.report import Digests

EVALUATION = 4
"""Incremented with every change of slop-code that can change a verdict."""

OTHER_RULES = "slop-code evaluates differently now"

CHANGED_INPUTS = {
    "submission": "the submission changed",
    "tests": "the tests changed",
    "config": "config.yaml changed",
    "environment": "the environment changed",
    "image": "the image changed",
    "python": "the submission's Python changed",
}


def changed_input(stored: Digests, current: Digests) -> str | None:
    """The first input that is no longer that of a stored result, in words; None where all are the same.

    An input whose digest is not known now, such as an image that is not on this machine, is not known to differ.
    """
    for name, reason in CHANGED_INPUTS.items():
        if getattr(current, name) not in (None, getattr(stored, name)):
            return reason
    return None


@functools.cache
def evaluation_version() -> str:
    """Also changes with the locked test tools and with the modules that the judge loads."""
    parts = [LOCK.read_text(), *(source.read_text() for source in judge_sources().values())]
    return f"{EVALUATION}-{digest_of(parts)[:12]}"
