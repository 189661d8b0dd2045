"""A file that grows, handed on while it does."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, BinaryIO

from slop_code._io import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHUNK = 1 << 16
STEP_S = 0.05


@contextlib.contextmanager
def follow_file(path: Path, tell: Callable[[bytes], None] | None) -> Iterator[None]:
    """While the block runs, `tell` is given what comes into the file, once it is there; then the rest."""
    if tell is None:
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_follow, args=(path, tell, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _follow(path: Path, tell: Callable[[bytes], None], done: threading.Event) -> None:
    stream, ended = None, False
    try:
        while not ended:
            ended = done.wait(STEP_S)
            stream = stream or _opened(path)
            while stream and (chunk := stream.read(CHUNK)):
                tell(chunk)
    finally:
        if stream:
            stream.close()


def _opened(path: Path) -> BinaryIO | None:
    with contextlib.suppress(OSError):
        return open_regular(path)
    return None
