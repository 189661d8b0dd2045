"""Tables that fit, with names that are whole."""

import pytest
from rich.text import Text

from slop_code.reporting.table_layout import TableColumn, TableRow, layout_table

COLUMNS = [
    TableColumn("passed", right=False),
    TableColumn("broke", drop=2),
    TableColumn("core"),
    TableColumn("time", drop=1),
]


def drawn(rows, width, columns=COLUMNS):
    lines = layout_table("checkpoint", columns, rows, width)
    return lines and [line.plain for line in lines]


def row(group, name, *cells):
    return TableRow(group, name, [Text(cell) for cell in (cells or ("PASSED", "1", "5/5", "2.0 s"))])


def test_a_group_is_named_once_above_its_rows():
    assert drawn([row("a", "one"), row("a", "two", "NO", "10", "12/12", "-"), row("b", "one")], 80) == [
        "checkpoint passed broke  core  time",
        "───────────────────────────────────",
        "a",
        "  one      PASSED     1   5/5 2.0 s",
        "  two      NO        10 12/12     -",
        "b",
        "  one      PASSED     1   5/5 2.0 s",
    ]


@pytest.mark.parametrize(("group", "shown"), [("a", "a/one"), ("", "one")])
def test_a_row_that_shares_nothing_has_its_whole_name(group, shown):
    assert drawn([row(group, "one")], 80)[2].split()[0] == shown


@pytest.mark.parametrize(
    ("width", "heads"),
    [
        (34, "checkpoint passed broke core  time"),
        (33, "checkpoint passed broke core"),
        (28, "checkpoint passed broke core"),
        (27, "checkpoint passed core"),
        (22, "checkpoint passed core"),
        (21, None),
        (0, None),
    ],
)
def test_where_there_is_no_room_columns_go_and_names_stay(width, heads):
    lines = drawn([row("a", "one"), row("a", "two")], width)
    assert (lines and lines[0]) == heads
    assert lines is None or max(map(len, lines)) <= max(width, 0)


def test_a_heading_takes_no_room_from_the_columns():
    assert drawn([row("a" * 60, "one"), row("a" * 60, "two")], 40)[0] == "checkpoint passed broke core  time"
    assert drawn([row("", "a" * 60)], 40) is None


def test_wide_characters_take_two_columns():
    lines = layout_table("checkpoint", COLUMNS, [row("", "漢字漢字漢字漢字"), row("", "one")], 80)
    assert {line.cell_len for line in lines} == {40}


def test_a_styled_cell_keeps_its_style():
    (_, _, line) = layout_table("run", [TableColumn("passed")], [TableRow("", "a", [Text("NO", "red")])], 80)
    assert [(line.plain[span.start : span.end], span.style) for span in line.spans if span.style] == [("NO", "red")]
