"""Data of the table of agents on the report: texts as they are shown, and values to sort by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slop_code.comparison.leaderboard import build_leaderboard
from slop_code.reporting.html.page_texts import limited, name_of
from slop_code.reporting.leaderboard.board_columns import policy_column, table_columns
from slop_code.reporting.leaderboard.board_notes import notes
from slop_code.reporting.text import NO_VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.comparison.leaderboard import AgentRow, AgentRun
    from slop_code.evaluation.policy import Policy
    from slop_code.reporting.leaderboard.board_columns import BoardColumn

MAX_LISTED_RUNS = 100
LEFT_OUT = ("problems", "checkpoints")
"""Columns that the page has no room for: where they differ, the column `missing` and the notes say so."""


def agents_data(runs: Sequence[AgentRun], policies: Sequence[Policy]) -> dict[str, Any] | None:
    """None for a single run. Columns of policies are apart, as the page shows that of the selected policy."""
    if len(runs) < 2:
        return None
    board = build_leaderboard(runs, policies)
    all_columns = table_columns(board.model_copy(update={"policies": []}))
    columns = [column for column in all_columns if column.name not in LEFT_OUT]
    verdicts = [policy_column(policy) for policy in board.policies]
    by_run = {run: number for number, row in enumerate(board.rows) for run in (*row.runs, *row.copies)}
    return {
        "columns": [_column_data(column) for column in columns],
        "rows": [_row_data(row, columns, verdicts) for row in board.rows],
        "by_run": [by_run.get(run.name) for run in runs],
        "notes": [name_of(text) for text, _ in notes(board)],
    }


def _column_data(column: BoardColumn) -> dict[str, Any]:
    return {"name": column.name, "head": column.head, "over": column.over, "lowest_first": column.lowest_first}


def _row_data(row: AgentRow, columns: Sequence[BoardColumn], verdicts: Sequence[BoardColumn]) -> dict[str, Any]:
    return {
        "name": name_of(row.name),
        "identity": name_of(row.identity.text()),
        "runs": limited(row.runs, MAX_LISTED_RUNS, name_of),
        "missing": row.missing > 0,
        "cells": [_cell(column, row) for column in columns],
        "policies": [_cell(column, row) for column in verdicts],
    }


def _cell(column: BoardColumn, row: AgentRow) -> list[Any]:
    """The text, and the value; null where nothing is recorded."""
    text = column.text(row)
    return [None if text == NO_VALUE else text, column.value(row)]
