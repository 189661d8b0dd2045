"""Canary of a problem: a text in its files by which copies of them are found, in training data and in submissions."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from slop_code._safe_text import NAME_LIMIT, escape_control
from slop_code.errors import SlopCodeError
from slop_code.execution.submission import RESERVED, walk_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig

MIN_LENGTH = 8
"""A shorter text occurs by chance."""

MAX_FILES = 20_000
MAX_FILE_BYTES = 4 << 20
"""The rest of a larger file is not searched."""

MAX_BYTES = 256 << 20
"""Bytes of all files together that are searched."""


def canary_of(problem: ProblemConfig) -> bytes | None:
    text = (problem.canary or "").strip()
    return text.encode() if len(text) >= MIN_LENGTH else None


def canary_warnings(problem: ProblemConfig, submission: Path) -> Iterator[str]:
    """A warning with the first file of the submission that has the canary. The canary itself is not repeated."""
    canary = canary_of(problem)
    if canary is None:
        return
    with contextlib.suppress(SlopCodeError, OSError):  # a submission that cannot be read has another reason
        for path, content in text_files(submission):
            if canary in content:
                name = escape_control(path, NAME_LIMIT)
                yield f"the submission has the canary of the problem, in {name}: its author may have seen the problem"
                return


def text_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Path and content of each text file, within limits; links are not followed."""
    left = MAX_BYTES
    for count, entry in enumerate(walk_tree(folder, RESERVED)):
        if count >= MAX_FILES or left <= 0:
            return
        if entry.kind != stat.S_IFREG or entry.descriptor is None or entry.is_binary():
            continue
        content = bytearray()
        for part in entry.content():
            content += part
            if len(content) >= MAX_FILE_BYTES:
                break
        left -= len(content)
        yield os.fsdecode(entry.path), bytes(content)
