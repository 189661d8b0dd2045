"""Output of all commands. Text of a submission is never markup nor a control sequence."""

from __future__ import annotations

import codecs
import threading
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text

from slop_code.reporting.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slop_code._io import BestEffortStream

    StyledLine = tuple[str, str]
    """A text and its Rich style."""

MAX_CHARACTERS = 1 << 20


class ResultConsole(Console):
    """Standard output. Only styles that are given colour it."""

    def __init__(self) -> None:
        super().__init__(highlight=False)

    def on_broken_pipe(self) -> None:
        """Rich would exit with a status of its own."""
        raise BrokenPipeError


def print_lines(console: Console, lines: Iterable[StyledLine]) -> None:
    for text, style in lines:
        console.print(Text(text, style), soft_wrap=True)


class LiveOutput:
    """Decodes bytes and writes them as text, with control characters escaped and no more than `limit` characters."""

    def __init__(self, stream: TextIO | BestEffortStream, limit: int = MAX_CHARACTERS) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._left = limit
        self._lock = threading.Lock()

    def __call__(self, data: bytes) -> None:
        """Any thread may call this: several may run tests at the same time."""
        with self._lock:
            if self._left <= 0:
                return
            text = printable(self._decoder.decode(data))
            shown, self._left = text[: self._left], self._left - len(text)
            note = "" if self._left > 0 else "\n[... the rest is not shown ...]\n"
            self._stream.write(shown + note)
            self._stream.flush()
