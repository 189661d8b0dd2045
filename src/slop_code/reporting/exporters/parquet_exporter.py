"""Parquet, written by the optional dependency pyarrow."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

from slop_code.errors import UsageError
from slop_code.reporting.exporters.export_rows import COLUMNS, rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slop_code.evaluation.policy import Policy
    from slop_code.reporting.exporters.export_rows import ExportRow
    from slop_code.runs.read_results import StoredCheckpoint

MAX_BATCH_ROWS = 10_000
MAX_BATCH_CHARACTERS = 32 * 1024 * 1024
"""Characters of the messages of a batch."""


def export(entries: Iterable[StoredCheckpoint], out: BinaryIO, policy: Policy) -> None:  # noqa: ARG001
    if out.isatty():
        raise UsageError("parquet is binary and not for a terminal; give -o FILE, or redirect the output to a file")
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UsageError(f"parquet needs pyarrow ({error}); install it: pip install 'slop-code[parquet]'") from error
    kinds = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64(), list: pa.list_(pa.string())}
    schema = pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        for batch in batches(rows(entries)):
            writer.write_table(pa.Table.from_pylist(batch, schema))


def batches(
    rows: Iterable[ExportRow], max_rows: int = MAX_BATCH_ROWS, max_characters: int = MAX_BATCH_CHARACTERS
) -> Iterator[list[ExportRow]]:
    """Batches that fit into memory."""
    source = iter(rows)
    for first in source:
        batch, characters = [], 0
        for row in chain([first], source):
            batch.append(row)
            characters += len(str(row["message"] or ""))
            if len(batch) >= max_rows or characters >= max_characters:
                break
        yield batch
