"""Console of all commands, and lines with a style. Text of a submission is never markup nor a control sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    StyledLine = tuple[str, str]
    """A text and its Rich style."""


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
