"""Leaderboard as a file: CSV, JSON, Markdown or lines of text."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

from slop_code.reporting.exporters.csv_exporter import cell
from slop_code.reporting.exporters.markdown_exporter import code
from slop_code.reporting.leaderboard.board_columns import columns_of, table_columns
from slop_code.reporting.leaderboard.board_notes import notes
from slop_code.reporting.leaderboard.leaderboard_table import plain
from slop_code.reporting.text import file_safe

if TYPE_CHECKING:
    from collections.abc import Callable

    from slop_code.comparison.leaderboard import Leaderboard


MAX_NOTE_WIDTH = 500


def as_csv(board: Leaderboard) -> str:
    """By RFC 4180; an empty cell is not recorded."""
    columns, text = columns_of(board), io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([cell(file_safe(column.name)) for column in columns])
    for row in board.rows:
        values = [column.value(row) for column in columns]
        writer.writerow([cell(file_safe(value)) if isinstance(value, str) else value for value in values])
    return text.getvalue()


def as_json(board: Leaderboard) -> str:
    """ASCII only, so that no name in it controls a terminal."""
    return json.dumps(board.model_dump(mode="json"), indent=2, allow_nan=False) + "\n"


def as_markdown(board: Leaderboard) -> str:
    """Names are in code spans: no text in them is markup."""
    columns = table_columns(board)
    heads = ["agent", *(code(column.head) if column.user_text else column.head for column in columns)]
    lines = [heads, ["---", *["--:"] * len(columns)]]
    lines += [[code(row.name), *(column.text(row) for column in columns)] for row in board.rows]
    table = [f"| {' | '.join(cells)} |" for cells in lines]
    below = [f"- {code(text, MAX_NOTE_WIDTH)}" for text, _ in notes(board)]
    return "\n".join([*table, "", *below]) + "\n"


def as_text(board: Leaderboard) -> str:
    return "".join(f"{line}\n" for line in (*plain(board), *(text for text, _ in notes(board))))


RENDERERS: dict[str, Callable[[Leaderboard], str]] = {
    "table": as_text,
    "csv": as_csv,
    "json": as_json,
    "markdown": as_markdown,
}
