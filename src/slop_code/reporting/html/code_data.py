"""Code of a submission over checkpoints, for the report: figures of each snapshot, and diffs where tests broke."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slop_code.errors import ResultError
from slop_code.quality.line_diff import StepBudget
from slop_code.quality.quality_record import QUALITY_FILE, Quality
from slop_code.quality.snapshot_diff import MAX_STEPS, compare_files, read_snapshot, unread_paths
from slop_code.quality.sources import IN_TOOL_FOLDER
from slop_code.reporting.html.page_texts import escaped, name_of, short
from slop_code.reporting.text import plural
from slop_code.runs.run_layout import stored_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.quality.snapshot_diff import FileChange, SnapshotChanges, SnapshotFiles
    from slop_code.runs.checkpoint_lines import CheckpointLine
    from slop_code.runs.read_results import StoredCheckpoint

MAX_REPORT_STEPS = 20_000_000
"""Steps of all comparisons of a report, some 20 seconds; beyond them, files are compared roughly."""

MAX_DIFFS_LENGTH = 2_000_000
"""Characters of all packed diffs together. From the first one that does not fit, only files and counts are stored, and
without room for these nothing."""

MAX_DIFF_FILES = 100
MAX_DIFF_LINES = 2_000
MAX_FILE_DIFF_LINES = 400
MAX_LINE_LENGTH = 300
SHOWN = {"verbosity", "erosion", "cog_erosion", "source_lines", "max_complexity"}


@dataclass(frozen=True, slots=True)
class CheckpointCode:
    figures: dict[str, Any] | None = None
    """None where nothing is recorded."""

    broke: SnapshotChanges | None = None
    """Since the checkpoint at which the tests that broke here passed; None where none broke, or nothing is recorded."""


@dataclass(slots=True)
class CodeHistory:
    """Snapshots that the next checkpoint is compared with; each snapshot is read once."""

    last: CheckpointLine | None = None
    files: SnapshotFiles | None = None
    """Of the last checkpoint."""

    judged: SnapshotFiles | None = None
    """Of the last checkpoint with a verdict, with which tests are compared."""

    def add(self, entry: StoredCheckpoint, steps: StepBudget) -> CheckpointCode:
        line = entry.line
        if self.last is None or self.last.problem != line.problem:
            self.last, self.files, self.judged = None, None, None
        before = self._before(line)
        files = read_snapshot(stored_snapshot(entry.folder)) if entry.folder is not None else None
        changes = broke = None
        if files is not None:
            changes = None if before is None else compared(before, files, steps)
            if line.regressions is not None and line.regressions.introduced and self.judged is not None:
                broke = changes if before is self.judged else compared(self.judged, files, steps)
        self.last, self.files = line, files
        if line.state == "evaluated":
            self.judged = files
        return CheckpointCode(figures(snapshot_figures(files, changes), quality_figures(entry)), broke)

    def _before(self, line: CheckpointLine) -> SnapshotFiles | None:
        """Of the checkpoint directly before this one. Before the first one there is nothing."""
        if line.order == 1:
            return {}
        return self.files if self.last is not None and self.last.order == line.order - 1 else None


def compared(before: SnapshotFiles, after: SnapshotFiles, steps: StepBudget) -> SnapshotChanges:
    own = StepBudget(min(MAX_STEPS, steps.left))
    given = own.left
    changes = compare_files(before, after, own)
    steps.take(given - own.left)
    return changes


Figures = tuple[dict[str, Any], list[str]]
"""Values by name, and the reasons why some of them are incomplete."""


def figures(*parts: Figures) -> dict[str, Any] | None:
    values = {name: value for part, _ in parts for name, value in part.items()}
    notes = "; ".join(note for _, notes in parts for note in notes)
    return {**values, "incomplete": short(notes) or None} if values or notes else None


def snapshot_figures(files: SnapshotFiles | None, changes: SnapshotChanges | None) -> Figures:
    """`changes`: since the checkpoint before, if its snapshot is recorded."""
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


def quality_figures(entry: StoredCheckpoint) -> Figures:
    """Figures of both sides, where `slop-code metrics` measured the submission of the result."""
    if entry.folder is None:
        return {}, []
    try:
        quality = Quality.load(entry.folder)
    except ResultError:
        return {}, [f"{QUALITY_FILE} cannot be read"]
    if quality is None:
        return {}, []
    if entry.results is not None and quality.submission != entry.results.provenance.digests.submission:
        return {}, [f"{QUALITY_FILE} is of another submission"]
    notes = [f"no figures of the {side}: {reason}" for side, reason in quality.failures.items()]
    left_out = [part for part in quality.left_out if part.reason != IN_TOOL_FOLDER]
    notes += [f"{plural(part.files, 'source file')} not measured: {part.reason}" for part in left_out]
    sides = {"implementation": quality.implementation, "tests": quality.tests}
    return {side: measured.model_dump(include=SHOWN) for side, measured in sides.items() if measured}, notes


def diff_data(changes: SnapshotChanges, limit: int) -> dict[str, Any]:
    """Files in the order of their paths, each with its diff while there are lines left of the limit."""
    left, files = limit, []
    for change in changes.files[:MAX_DIFF_FILES]:
        files.append(file_diff(change, min(left, MAX_FILE_DIFF_LINES)))
        left -= line_count(files[-1]["text"])
    return {"files": files, "left_out": max(0, len(changes.files) - MAX_DIFF_FILES)}


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
    yield {"files": [], "left_out": len(bare) + diff["left_out"]}


def line_count(text: str) -> int:
    return text.count("\n") + 1 if text else 0
