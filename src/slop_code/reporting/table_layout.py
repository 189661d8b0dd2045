"""Layout of a table that fits the terminal, with names that are never wrapped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

INDENT = "  "


@dataclass(frozen=True, slots=True)
class TableRow:
    group: str
    """Heading of the rows that share it; empty where there is none."""
    name: str
    cells: Sequence[Text]


@dataclass(frozen=True, slots=True)
class TableColumn:
    head: str
    right: bool = True
    drop: int | None = None
    """In a narrow terminal the column with the lowest number is dropped first; None is never dropped."""


def layout_table(kind: str, columns: Sequence[TableColumn], rows: Sequence[TableRow], width: int) -> list[Text] | None:
    """Lines of the table, or None if the columns that cannot be dropped do not fit. `kind` is the head of the names."""
    grouped = len({row.group for row in rows}) < len(rows) and any(row.group for row in rows)
    names = [_name(row, grouped=grouped) for row in rows]
    first = max(map(cell_len, [kind, *names]))
    widths = _widths(columns, rows)
    kept = _fitting(columns, widths, width - first)
    if kept is None:
        return None
    heads = [Text(columns[number].head, "bold") for number in kept]
    shape = [(widths[number], columns[number].right) for number in kept]
    lines = [_line(Text(kind, "bold"), heads, first, shape)]
    lines.append(Text("─" * lines[0].cell_len, "dim"))
    group = None
    for row, name in zip(rows, names, strict=True):
        if grouped and row.group != group:
            group = row.group
            lines.append(Text(group, "bold"))
        lines.append(_line(Text(name), [row.cells[number] for number in kept], first, shape))
    return lines


def room_for_names(columns: Sequence[TableColumn], rows: Sequence[TableRow], width: int) -> int:
    """Cells that are left for names beside the columns that are never dropped."""
    widths = _widths(columns, rows)
    return width - sum(widths[number] + 1 for number, column in enumerate(columns) if column.drop is None)


def _widths(columns: Sequence[TableColumn], rows: Sequence[TableRow]) -> list[int]:
    return [
        max(cell_len(column.head), *(row.cells[number].cell_len for row in rows))
        for number, column in enumerate(columns)
    ]


def _name(row: TableRow, *, grouped: bool) -> str:
    return f"{INDENT}{row.name}" if grouped else f"{row.group}/{row.name}" if row.group else row.name


def _fitting(columns: Sequence[TableColumn], widths: Sequence[int], room: int) -> list[int] | None:
    """Numbers of the columns that fit, with a space before each."""
    kept = list(range(len(columns)))
    droppable = sorted((column.drop, number) for number, column in enumerate(columns) if column.drop is not None)
    for _, number in droppable:
        if sum(widths[index] + 1 for index in kept) <= room:
            break
        kept.remove(number)
    return kept if sum(widths[index] + 1 for index in kept) <= room else None


def _line(name: Text, cells: Sequence[Text], first: int, shape: Sequence[tuple[int, bool]]) -> Text:
    line = Text.assemble(name, " " * (first - name.cell_len))
    for cell, (width, right) in zip(cells, shape, strict=True):
        space = " " * (width - cell.cell_len)
        line.append(" ")
        line.append_text(Text.assemble(space, cell) if right else Text.assemble(cell, space))
    return line
