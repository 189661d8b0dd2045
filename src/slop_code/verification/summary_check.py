"""Check of a run's summary: its lines compared with the results, and the checkpoints without a result."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine, read_lines
from slop_code.runs.folders.result_folders import result_files
from slop_code.runs.run_layout import LINES_FILE
from slop_code.runs.scb.scb_lines import has_own_lines
from slop_code.verification.contradictions import Discrepancy
from slop_code.verification.inputs import as_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slop_code.runs.read_results import RunResults
    from slop_code.verification.stored_document import Document


def summary_lines_by_result(run: RunResults) -> tuple[dict[Path, CheckpointLine], list[CheckpointLine]]:
    """Lines of the summary by the path of their evaluation.json, and lines of checkpoints without a result."""
    paths = {os.path.relpath(path, run.folder): path for path in result_files(run.folder)}
    lines = read_lines(run.folder / LINES_FILE) if has_own_lines(run.folder) else []
    known = {paths[line.evaluation]: line for line in lines if line.evaluation in paths}
    return known, [entry.line for entry in run.entries() if entry.folder is None]


def summary_discrepancies(line: CheckpointLine, document: Document) -> Iterator[Discrepancy]:
    """Fields in which a line of the summary differs from the stored result."""
    stored, facts = document.results, CheckpointFacts.of(document.results)
    names = [
        ("problem_name", stored.problem_name, line.problem),
        ("checkpoint_name", stored.checkpoint_name, line.checkpoint),
        ("state", facts.state, line.state),
    ]
    yield from (Discrepancy("summary", field, value, other) for field, value, other in names if value != other)
    if facts.state != line.state:
        return  # the counts differ for the same reason
    for name in ("pass_counts", "total_counts", "passed"):
        derived = document.derived[name]
        for key, other in getattr(line, name).items():
            value = derived.get(key) if isinstance(derived, dict) else None
            if type(value) is not type(other) or value != other:
                yield Discrepancy("summary", f"{name}.{key}", as_text(value), as_text(other))
