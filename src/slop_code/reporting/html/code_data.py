"""Code of a submission over checkpoints, for the report: figures of each snapshot, and diffs where tests broke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slop_code.quality.quality_record import CodePart
from slop_code.quality.snapshot_diff import unread_paths
from slop_code.reporting.html.page_texts import escaped, name_of, short
from slop_code.reporting.text import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.quality.quality_record import MeasuredQuality
    from slop_code.quality.snapshot_diff import CheckpointChanges, FileChange, SnapshotChanges, SnapshotFiles

MAX_DIFFS_LENGTH = 2_000_000
"""Characters of all packed diffs together. From the first one that does not fit, only files and counts are stored, and
without room for these nothing."""

MAX_DIFF_FILES = 100
MAX_DIFF_LINES = 2_000
MAX_FILE_DIFF_LINES = 400
MAX_LINE_LENGTH = 300
SHOWN = {"verbosity", "erosion", "cog_erosion", "source_lines", "max_complexity"}


def code_figures(snapshots: CheckpointChanges, quality: MeasuredQuality) -> dict[str, Any] | None:
    """None where nothing is recorded."""
    parts = snapshot_figures(snapshots.files, snapshots.changes), quality_figures(quality)
    values = {name: value for part, _ in parts for name, value in part.items()}
    notes = "; ".join(note for _, notes in parts for note in notes)
    return {**values, "incomplete": short(notes) or None} if values or notes else None


FiguresWithNotes = tuple[dict[str, Any], list[str]]
"""Values by name, and the reasons why some of them are incomplete."""


def snapshot_figures(files: SnapshotFiles | None, changes: SnapshotChanges | None) -> FiguresWithNotes:
    """`changes` are those since the checkpoint before, if its snapshot is recorded."""
    if files is None:
        return {}, []
    unread = changes.unread if changes else len(unread_paths(files))
    notes = [f"{plural(unread, 'file')} too large to count"] if unread else []
    notes += [f"{plural(changes.rough, 'file')} compared roughly"] if changes and changes.rough else []
    return {
        "lines": sum(file.lines for file in files.values()),
        "added": changes.lines_added if changes else None,
        "removed": changes.lines_removed if changes else None,
        "churn": changes.churn if changes else None,
    }, notes


def quality_figures(quality: MeasuredQuality) -> FiguresWithNotes:
    """Figures of both code parts, where `slop-code metrics` measured the submission of the result."""
    record = quality.record
    if record is None:
        return {}, [quality.note] if quality.note else []
    notes = [f"no figures of the {part}: {reason}" for part, reason in record.failures.items()]
    notes += [f"{plural(left.files, 'source file')} not measured: {left.reason}" for left in record.left_out]
    parts = {part: getattr(record, part) for part in CodePart}
    return {part: measured.model_dump(include=SHOWN) for part, measured in parts.items() if measured}, notes


def diff_data(changes: Sequence[FileChange], unread: int, limit: int) -> dict[str, Any]:
    """Files in this order, each with its diff while there are lines left of the limit.

    `unread`: files that are not read, of which those with the same size are not among the changes.
    """
    left, files = limit, []
    for change in changes[:MAX_DIFF_FILES]:
        files.append(file_diff(change, min(left, MAX_FILE_DIFF_LINES)))
        left -= line_count(files[-1]["text"])
    unknown = unread - sum(change.is_unread for change in changes)
    return {"files": files, "left_out": max(0, len(changes) - MAX_DIFF_FILES), "unknown": unknown}


def file_diff(change: FileChange, limit: int) -> dict[str, Any]:
    diff = list(change.diff()) if limit else []
    note = "binary" if change.is_binary else "too large to compare" if change.is_unread else None
    return {
        "name": name_of(change.path),
        "kind": change.kind,
        "added": change.lines_added,
        "removed": change.lines_removed,
        "note": "compared roughly" if change.is_rough else note,
        "text": escaped("\n".join(map(cut, diff[:limit]))),
        "left_out": max(0, len(diff) - limit) if limit else change.lines_added + change.lines_removed,
    }


def cut(line: str) -> str:
    rest = len(line) - MAX_LINE_LENGTH
    return line if rest <= 0 else f"{line[:MAX_LINE_LENGTH]} [... {rest} characters]"


def smaller_diffs(diff: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The diff itself, without the lines, and without the files."""
    yield diff
    bare = [{**file, "text": "", "left_out": file["left_out"] + line_count(file["text"])} for file in diff["files"]]
    yield {**diff, "files": bare}
    yield {**diff, "files": [], "left_out": len(bare) + diff["left_out"]}


def line_count(text: str) -> int:
    return text.count("\n") + 1 if text else 0
