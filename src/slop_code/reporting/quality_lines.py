"""Code quality on standard output: a table on a terminal, a line for each snapshot elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from slop_code.quality.quality_record import CodePart
from slop_code.reporting.table_layout import TableColumn, TableRow, layout_table
from slop_code.reporting.terminal import print_lines
from slop_code.reporting.text import NO_VALUE, first_line, one_line, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from slop_code.quality.measure_runs import MeasuredSnapshot
    from slop_code.quality.quality_record import QualityFigures, QualityRecord
    from slop_code.reporting.terminal import StyledLine

COLUMNS = [
    TableColumn("lines"),
    TableColumn("verbosity"),
    TableColumn("erosion"),
    TableColumn("cog_erosion", drop=3),
    TableColumn("max cc", drop=4),
    TableColumn("files", drop=2),
    TableColumn("test lines", drop=5),
    TableColumn("left out", drop=1),
]


def show_quality(measured: Sequence[MeasuredSnapshot], console: Console) -> None:
    rows = [TableRow(one_line(each.target.group), one_line(each.target.checkpoint), _cells(each)) for each in measured]
    drawn = layout_table("checkpoint", COLUMNS, rows, console.width) if console.is_terminal and rows else None
    for line in drawn or (Text(text) for each in measured for text in plain_lines(each)):
        console.print(line, soft_wrap=True)
    print_lines(console, note_lines(measured))


def plain_lines(measured: MeasuredSnapshot) -> Iterator[str]:
    for part in CodePart:
        figures = _figures(measured.quality, part)
        if figures is not None:
            yield f"{one_line(measured.target.label)}: {part}: {_sentence(figures)}"


def note_lines(measured: Sequence[MeasuredSnapshot]) -> Iterator[StyledLine]:
    """Why figures are missing, and the number of files that no figure counts."""
    for each in measured:
        label = one_line(each.target.label)
        if each.reason is not None:
            yield f"{label}: not measured: {first_line(each.reason)}", "bold magenta"
        if each.quality and each.quality.is_incomplete and each.quality.implementation:
            files = plural(each.quality.incomplete[CodePart.IMPLEMENTATION], "source file")
            yield f"{label}: incomplete: {files} of the implementation not measured", "yellow"
        for left in each.quality.left_out if each.quality else ():
            example = one_line(left.first[0]) if left.first else ""
            yield f"{label}: {plural(left.files, 'file')} left out: {one_line(left.reason)} ({example})", "dim"


def quality_json(measured: MeasuredSnapshot) -> dict[str, Any]:
    quality = measured.quality
    return {
        "snapshot": str(measured.target.snapshot),
        "label": measured.target.label,
        "error": measured.error,
        "quality": quality.model_dump(mode="json") if quality else None,
    }


def _figures(quality: QualityRecord | None, part: CodePart) -> QualityFigures | None:
    figures: QualityFigures | None = getattr(quality, part) if quality else None
    return figures


def _cells(measured: MeasuredSnapshot) -> list[Text]:
    quality = measured.quality
    own, tests = (_figures(quality, part) for part in CodePart)
    left_out = str(sum(left.files for left in quality.left_out)) if quality else NO_VALUE
    test_lines = str(tests.source_lines) if tests else NO_VALUE
    if own is None:
        return [Text(text) for text in (*[NO_VALUE] * 6, test_lines, left_out)]
    complexity = NO_VALUE if own.max_complexity is None else str(own.max_complexity)
    texts = [str(own.source_lines), f"{own.verbosity:.3f}", f"{own.erosion:.3f}", f"{own.cog_erosion:.3f}"]
    return [Text(text) for text in (*texts, complexity, str(own.files), test_lines, left_out)]


def _sentence(figures: QualityFigures) -> str:
    complexity = "" if figures.max_complexity is None else f", largest complexity {figures.max_complexity}"
    shares = f"verbosity {figures.verbosity:.3f}, erosion {figures.erosion:.3f}, cog_erosion {figures.cog_erosion:.3f}"
    lines, files = plural(figures.source_lines, "source line"), plural(figures.files, "file")
    return f"{shares}, {lines} in {files}{complexity}"
