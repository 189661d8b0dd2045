"""CSV by RFC 4180, in UTF-8."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, BinaryIO

from slop_code.reporting.exporters.export_rows import COLUMNS, rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slop_code.evaluation.policy import Policy
    from slop_code.runs.read_results import StoredCheckpoint

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Starts of a text that a spreadsheet would execute; the last four are full-width forms of the others."""


def export(entries: Iterable[StoredCheckpoint], out: BinaryIO, policy: Policy) -> None:  # noqa: ARG001
    text = io.TextIOWrapper(out, encoding="utf-8", newline="")
    try:
        writer = csv.writer(text)
        writer.writerow(COLUMNS)
        for row in rows(entries):
            writer.writerow([cell(value) for value in row.values()])
        text.flush()
    finally:
        text.detach()


def cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        value = " ".join(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
