"""Files of the judge that are read while it writes them: its output, and the stream for progress."""

from __future__ import annotations

import contextlib
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._io import open_regular
from slop_code.evaluation.context import ignore_progress
from slop_code.evaluation.reports.stream_progress import StreamProgress
from slop_code.evaluation.result_files.evidence_files import STREAM
from slop_code.execution.cancellation import start_or_fail
from slop_code.execution.progress_events import ProgressEvent, ProgressKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from slop_code.evaluation.context import EvaluationContext
    from slop_code.evaluation.reports.stream_progress import StreamReader
    from slop_code.evaluation.roster import Roster
    from slop_code.execution.sandbox import JudgeRequest
    from slop_code.execution.session import Session

CHUNK = 1 << 16
FOLLOWER = "follower"
"""Name of the threads."""
POLL_S = 0.05
STREAM_POLL_S, STREAM_CHUNKS = 0.25, 16
"""Progress may lag behind a stream that grows faster than this; nothing waits for it."""


def stream_progress(context: EvaluationContext, session: Session, roster: Roster) -> StreamProgress | None:
    """The progress of the tests, or None if nobody asks for it."""
    if context.progress is ignore_progress:
        return None
    total = sum(entry.pair is not None for entry in roster.entries)
    location = str(session.submission), context.problem.name, context.checkpoint.name
    return StreamProgress(ProgressEvent(ProgressKind.TESTS_DONE, *location, total=total), context.progress)


def follow_stream(session: Session, request: JudgeRequest, reader: StreamReader | None) -> AbstractContextManager[None]:
    """A container sends the stream only at its end, so that the file is not there before."""
    layout = session.layout
    folder = Path(layout.reports) if layout.judge is None else request.reports
    return follow_file(folder / STREAM, reader, STREAM_POLL_S, STREAM_CHUNKS)


@contextlib.contextmanager
def follow_file(
    path: Path, write: Callable[[bytes], None] | None, interval: float = POLL_S, chunks: int = sys.maxsize
) -> Iterator[None]:
    """Pass everything that is appended to the file to `write` while the block runs, and the rest at its end.

    `chunks`: at most so many at each look, also at the last.
    """
    if write is None:
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_follow, args=(path, write, done, interval, chunks), name=FOLLOWER, daemon=True)
    start_or_fail(thread)
    try:
        yield
    finally:
        done.set()
        thread.join()


def _follow(path: Path, write: Callable[[bytes], None], done: threading.Event, interval: float, chunks: int) -> None:
    stream, ended = None, False
    try:
        while not ended:
            ended = done.wait(interval)
            with contextlib.suppress(OSError):
                stream = stream or open_regular(path)
            left = chunks
            while stream and left and (chunk := stream.read(CHUNK)):
                write(chunk)
                left -= 1
    finally:
        if stream:
            stream.close()
