"""Status line on standard error: redrawn in place on a terminal, printed anew every few seconds elsewhere."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from rich.cells import cell_len, set_cell_size

from slop_code._io import BestEffortStream
from slop_code.reporting.progress.progress_text import progress_text
from slop_code.reporting.progress.ticker import Ticker
from slop_code.reporting.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slop_code.execution.progress_events import ProgressEvent

REDRAW_INTERVAL_S = 0.25
LINE_INTERVAL_S = 5.0
DEFAULT_WIDTH = 80
CLEAR = "\r\x1b[K"


def is_live(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


class ShownProgress(Protocol):
    """State of some work, by its events; any thread may send them or ask for the text."""

    def __call__(self, event: ProgressEvent) -> None: ...

    def text(self) -> str:
        """The current line, with control characters escaped; nothing is shown where it is empty."""


class StatusLine:
    """A progress callback, shown while the block runs. Any thread may call the methods.

    Without a terminal it shows nothing before the first interval has passed: quick work leaves no lines in a file.
    """

    def __init__(
        self,
        progress: ShownProgress,
        stream: TextIO,
        stays: Callable[[ProgressEvent], bool],
        *,
        live: bool,
        quiet: bool = False,
        interval: float | None = None,
    ) -> None:
        """`stays` tells whether the text of an event is printed as a line that stays. `quiet` shows nothing at all."""
        self._progress, self._stays = progress, stays
        self._terminal, self._stream = stream, BestEffortStream(stream)
        self._live, self._quiet = live, quiet
        self._lock = threading.Lock()
        self._ticker = Ticker(self._tick, interval or (REDRAW_INTERVAL_S if live else LINE_INTERVAL_S))

    def __enter__(self) -> Self:
        if not self._quiet:
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ticker.stop()
        with self.hidden():
            pass

    def __call__(self, event: ProgressEvent) -> None:
        self._progress(event)
        if self._quiet:
            return
        with self._lock:
            if self._stays(event):
                self._write(f"{CLEAR if self._live else ''}· {one_line(progress_text(event))}\n")
            elif self._live and self._ticker.is_running and not event.is_count:
                self._draw()

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """While others print; the status line comes back at the next interval after the block."""
        with self._lock:
            if self._live and not self._quiet:
                self._write(CLEAR)
            yield

    def _tick(self) -> None:
        with self._lock:
            self._draw()

    def _draw(self) -> None:
        if text := self._progress.text():
            line = f"· {text}"
            self._write(CLEAR + fit(line, _width(self._terminal)) if self._live else f"{line}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def fit(text: str, width: int) -> str:
    """At most so many columns, cut in the middle: counts and times are at the end."""
    if cell_len(text) <= width:
        return text
    head = width // 3
    end = text[head + 1 - width :]
    while cell_len(end) > width - head - 1:
        end = end[1:]
    return f"{set_cell_size(text, head)}…{end}"


def _width(stream: TextIO) -> int:
    """Columns of a line that does not wrap."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return (columns or DEFAULT_WIDTH) - 1
