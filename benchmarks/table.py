"""Table of the measurements, for the terminal, for a page and for programs."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
HEADS = ("measurement", "median", "min", "max", "ratio", "relative to")
LINE_WIDTH = 116


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    unit: str
    samples: tuple[float, ...]
    against: str | None = None
    """Name of the baseline: a row of the same part, for the ratio."""

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


@dataclass(frozen=True, slots=True)
class Part:
    letter: str
    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    """Measurements that were not possible here, each with the reason."""

    def ratio(self, row: Row) -> float | None:
        bases = {base.what: base.median for base in self.rows}
        base = bases[row.against] if row.against else 0.0
        return row.median / base if base else None


def rows(times: Mapping[str, Sequence[float]], *, unit: str = "s", against: str | None = None) -> list[Row]:
    """`against`: the name of the baseline, which has no ratio itself."""
    return [
        Row(what, unit, tuple(values), against if against in times and what != against else None)
        for what, values in times.items()
    ]


def cells(part: Part, row: Row) -> tuple[str, ...]:
    ratio = part.ratio(row)
    return (
        row.what,
        f"{figure(row.median)} {row.unit}",
        figure(min(row.samples)),
        figure(max(row.samples)),
        "" if ratio is None else f"{ratio:.2f}",
        "" if ratio is None else str(row.against),
    )


def figure(value: float) -> str:
    """Three significant digits: further ones are noise."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def terminal(part: Part) -> str:
    lines = [HEADS, *(cells(part, row) for row in part.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    form = "  ".join(f"{{:{align}{width}}}" for align, width in zip("<>>>><", widths, strict=True))
    shown = [form.format(*line) for line in lines]
    return "\n".join([f"({part.letter}) {part.title}", *(f"  {line.rstrip()}" for line in (*shown, *part.notes))])


def markdown(parts: Sequence[Part], machine: Mapping[str, Any]) -> str:
    """All parts in one table; each starts with a line in bold."""
    facts = "; ".join(f"{name} {value}" for name, value in machine.items() if value not in (None, ""))
    lines = [
        fill(f"Machine: {facts}.", LINE_WIDTH, break_on_hyphens=False, break_long_words=False),
        "",
        f"| {' | '.join(HEADS)} |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for part in parts:
        lines.append(f"| **({part.letter}) {part.title}** |" + " |" * (len(HEADS) - 1))
        lines += [
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells(part, row))} |" for row in part.rows
        ]
        lines += [f"| *{note}* |" + " |" * (len(HEADS) - 1) for note in part.notes]
    return "\n".join(lines)


def with_table(page: str, table: str) -> str:
    """The page with the table between its two marks replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def document(parts: Sequence[Part], machine: Mapping[str, Any]) -> dict[str, Any]:
    sections = []
    for part in parts:
        shown = [{**asdict(row), "median": row.median, "ratio": part.ratio(row)} for row in part.rows]
        sections.append({"letter": part.letter, "title": part.title, "rows": shown, "notes": list(part.notes)})
    return {"schema_version": 1, "machine": dict(machine), "parts": sections}


def load(path: Path) -> list[Part]:
    """The parts of a stored `document`; derived figures are computed again."""
    return [
        Part(
            part["letter"],
            part["title"],
            tuple(Row(row["what"], row["unit"], tuple(row["samples"]), row["against"]) for row in part["rows"]),
            tuple(part["notes"]),
        )
        for part in json.loads(path.read_text())["parts"]
    ]
