"""Data of the report about regrades: a note for each run and checkpoint, with the tests that changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slop_code.reporting.html.page_texts import limited, name_of, short
from slop_code.reporting.regrade_lines import change_text
from slop_code.reporting.text import plural
from slop_code.verification.regrade.earlier_results import records_of
from slop_code.verification.regrade.regrade_record import RegradeOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slop_code.verification.regrade.regrade_record import RegradedCheckpoint, RegradeRecord

MAX_TESTS = 100
"""Tests of a checkpoint, of one regrade."""

MAX_RECORDS = 10
"""Regrades of a run; the last ones are shown."""

RegradeNotes = dict[tuple[str, str], list[dict[str, Any]]]


def regrade_notes(run: Path) -> tuple[list[str], RegradeNotes]:
    """A line for each regrade of a run, and the notes of each of its checkpoints, by problem and checkpoint."""
    records, notes = records_of(run)[-MAX_RECORDS:], RegradeNotes()
    for record in records:
        for checkpoint in record.checkpoints:
            if checkpoint.outcome != RegradeOutcome.UNCHANGED:
                key = checkpoint.problem, checkpoint.checkpoint
                notes.setdefault(key, []).append(_note(record.label, checkpoint))
    return [_line(record) for record in records], notes


def _line(record: RegradeRecord) -> str:
    changed = [checkpoint for checkpoint in record.checkpoints if checkpoint.tests]
    tests = plural(sum(len(checkpoint.tests) for checkpoint in changed), "test")
    left = "" if record.finished else "; it was interrupted, and the same command completes it"
    return f"regraded: label {name_of(record.label)}, {tests} changed in {plural(len(changed), 'checkpoint')}{left}"


def _note(label: str, checkpoint: RegradedCheckpoint) -> dict[str, Any]:
    reason = f": {short(checkpoint.reason)}" if checkpoint.reason else ""
    text = f"label {name_of(label)}, {checkpoint.outcome}{reason}, {plural(len(checkpoint.tests), 'test')} changed"
    return {"text": text, "tests": _tests(checkpoint)}


def _tests(checkpoint: RegradedCheckpoint) -> Sequence[str]:
    return limited(checkpoint.tests, MAX_TESTS, lambda test: f"{name_of(test.test)}: {short(change_text(test))}")
