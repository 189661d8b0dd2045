"""Values of a run that the tools of SlopCodeBench recorded, which an export takes over.

They come from files that anybody may have written: bounded, and only texts and numbers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from slop_code.evaluation.result_files.stored_record import SIZE_LIMIT
from slop_code.reporting.text import file_safe
from slop_code.runs.run_layout import RESULT_FILE
from slop_code.runs.scb.agent_facts import RESULT_SUMMARY_FILE, mapping, read_json
from slop_code.runs.scb.scb_lines import scb_lines_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAX_COLUMNS = 500
MAX_NUMBER = 2**63
EVALUATION_KEYS: dict[str, type] = {
    "problem_version": int,
    "checkpoint_version": int,
    "entrypoint": str,
    "pytest_collected": int,
    "test_collection_hash": str,
}
"""Keys of evaluation.json that slop-code does not record, with their types."""
QUALITY_BLOCKS = ("cc", "ratios", "verbosity", "erosion")

ColumnsByCheckpoint = dict[tuple[str, str], dict[str, Any]]


def carried_columns(run: Path) -> ColumnsByCheckpoint:
    """Columns by problem and checkpoint; empty where there is no such file of SlopCodeBench, not even renamed."""
    return {(line.problem, line.checkpoint): _plain_values(line.columns) for line in scb_lines_of(run)}


def carried_evaluation(folder: Path) -> dict[str, Any]:
    values = _plain_values(read_json(folder / RESULT_FILE, SIZE_LIMIT))
    return {name: values[name] for name, kind in EVALUATION_KEYS.items() if type(values.get(name)) is kind}


def carried_quality(run: Path) -> dict[str, Any]:
    """Blocks of statistics; a block within them has numbers alone."""
    document = read_json(run / RESULT_SUMMARY_FILE)
    blocks = {name: mapping(document.get(name)) for name in QUALITY_BLOCKS}
    return {name: _statistics(block) for name, block in blocks.items() if block}


def _statistics(block: Mapping[str, Any]) -> dict[str, Any]:
    inner = {file_safe(key): _plain_values(value) for key, value in block.items() if isinstance(value, dict)}
    return {**_plain_values(block), **inner}


def _plain_values(row: Mapping[str, Any]) -> dict[str, Any]:
    kinds = (str, int, float, type(None))
    return {file_safe(key): _plain(value) for key, value in [*row.items()][:MAX_COLUMNS] if isinstance(value, kinds)}


def _plain(value: Any) -> Any:
    """Numbers that another reader of JSON may refuse are None."""
    if isinstance(value, str):
        return file_safe(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or abs(value) <= MAX_NUMBER else None
