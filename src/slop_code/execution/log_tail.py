"""Follower of a growing log file."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, BinaryIO

from slop_code._io import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHUNK = 1 << 16
POLL_S = 0.05


@contextlib.contextmanager
def follow_file(path: Path, write: Callable[[bytes], None] | None) -> Iterator[None]:
    """Pass everything that is appended to the file to `write` while the block runs, and the rest at its end."""
    if write is None:
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_follow, args=(path, write, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _follow(path: Path, write: Callable[[bytes], None], done: threading.Event) -> None:
    stream, ended = None, False
    try:
        while not ended:
            ended = done.wait(POLL_S)
            stream = stream or _open_if_there(path)
            while stream and (chunk := stream.read(CHUNK)):
                write(chunk)
    finally:
        if stream:
            stream.close()


def _open_if_there(path: Path) -> BinaryIO | None:
    with contextlib.suppress(OSError):
        return open_regular(path)
    return None
