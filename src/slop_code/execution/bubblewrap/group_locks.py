"""Locks of control groups, by which the groups of killed evaluators are known: a living one holds the lock of each."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def new_group(parent: Path, prefix: str) -> tuple[Path, int]:
    """A group with a name of its own, and the descriptor that holds its lock.

    Tries again when another evaluator removed the group as abandoned before it was locked.
    """
    while True:
        group = parent / f"{prefix}{secrets.token_hex(8)}"
        group.mkdir()
        with contextlib.suppress(FileNotFoundError, BlockingIOError):
            return group, _lock(group)


def _lock(group: Path) -> int:
    """A descriptor that holds the lock. A killed evaluator loses it, whatever process namespace it lived in."""
    descriptor = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.stat(group)  # it may have been removed meanwhile
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def remove_group(group: Path) -> None:
    """Remove the group and those in it, as far as no process is in them."""
    for folder in (*group.glob("*/"), group):
        with contextlib.suppress(OSError):
            folder.rmdir()


def remove_abandoned_groups(parent: Path, prefix: str) -> None:
    for group in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            descriptor = _lock(group)
            try:
                remove_group(group)
            finally:
                os.close(descriptor)
