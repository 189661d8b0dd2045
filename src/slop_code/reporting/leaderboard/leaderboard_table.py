"""Leaderboard on standard output: a table on a terminal, a line for each agent elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from slop_code.reporting.leaderboard.board_columns import table_columns
from slop_code.reporting.leaderboard.board_notes import notes
from slop_code.reporting.table_layout import TableColumn, TableRow, layout_table, room_for_names
from slop_code.reporting.text import NO_VALUE, one_line
from slop_code.reporting.word_meanings import chances_meaning, rates_meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from slop_code.comparison.leaderboard import AgentRow, Leaderboard
    from slop_code.reporting.leaderboard.board_columns import BoardColumn

MIN_NAME_WIDTH = 16
MAX_NAME_WIDTH = 48
MISSING_STYLE = "yellow"


def show_leaderboard(board: Leaderboard, console: Console) -> None:
    drawn = table(board, console.width) if console.is_terminal else None
    for line in drawn or map(Text, plain(board)):
        console.print(line, soft_wrap=True)
    if drawn:
        console.print()
    for text, style in notes(board):
        console.print(Text(text, style), soft_wrap=not console.is_terminal)
    if console.is_terminal:
        for text in [rates_meaning(), *([chances_meaning()] if board.k else [])]:
            console.print(Text(text, "dim"))


def plain(board: Leaderboard) -> Iterator[str]:
    columns = table_columns(board)
    for row in board.rows:
        facts = [f"{_quoted(column)} {column.text(row)}" for column in columns]
        yield f"agent {one_line(row.name)}: {', '.join(facts)}"


def _quoted(column: BoardColumn) -> str:
    return f'"{column.head}"' if column.user_text else column.head


def table(board: Leaderboard, width: int) -> list[Text] | None:
    """Names are cut where there is no room for them. None where the terminal is too narrow for any name."""
    shown = table_columns(board)
    columns = [TableColumn(column.head, drop=column.drop) for column in shown]
    rows = [
        TableRow("", f"{number} {one_line(row.name)}", [_cell(column, row) for column in shown])
        for number, row in enumerate(board.rows, start=1)
    ]
    room = min(room_for_names(columns, rows, width), MAX_NAME_WIDTH)
    if room < MIN_NAME_WIDTH:
        return None
    cut = [replace(row, name=_cut(row.name, room)) for row in rows]
    lines = layout_table("agent", columns, cut, width)
    legend = [row.name for row, short in zip(rows, cut, strict=True) if short.name != row.name]
    return [*lines, Text(), *map(Text, legend)] if lines and legend else lines


def _cell(column: BoardColumn, row: AgentRow) -> Text:
    text = column.text(row)
    if text == NO_VALUE:
        return Text(text, "dim")
    return Text(text, MISSING_STYLE if row.missing and column.name == "missing_share" else "")


def _cut(name: str, width: int) -> str:
    return name if cell_len(name) <= width else f"{set_cell_size(name, width - 1)}…"
