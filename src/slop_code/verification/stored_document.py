"""Stored result as read from its file, even if its counts and verdicts contradict its tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slop_code._io import read_bounded
from slop_code.errors import ResultError
from slop_code.evaluation.report import DERIVED, SKIP_DERIVED_CHECK, CorrectnessResults
from slop_code.evaluation.result_files.stored_record import SIZE_LIMIT, as_result_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

STEP = "evaluate the snapshot again"


@dataclass(frozen=True, slots=True)
class Document:
    results: CorrectnessResults
    """Derived fields as computed from its tests."""

    derived: Mapping[str, Any]
    """Derived fields as stored in the file."""

    duplicates: Sequence[str] = ()
    """Tests that the file lists more than once."""


def read_document(path: Path) -> Document:
    """As strict as `CorrectnessResults.load`, but accepts counts and verdicts that contradict the tests."""
    with as_result_errors(path, STEP):
        data = _object(path, read_bounded(path, SIZE_LIMIT))
        duplicates = _remove_duplicates(data)
        rest = json.dumps({name: value for name, value in data.items() if name not in DERIVED})
        results = CorrectnessResults.model_validate_json(rest, strict=True, context=SKIP_DERIVED_CHECK)
        return Document(results, {name: data.get(name) for name in DERIVED}, duplicates)


def _object(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path}: not JSON; {STEP}") from error
    if not isinstance(data, dict):
        raise ResultError(f"{path}: not a JSON object; {STEP}")
    return data


def _remove_duplicates(data: dict[str, Any]) -> list[str]:
    """Keeps the first entry of each test, and returns the names of the entries that were removed."""
    tests, seen, duplicates = data.get("tests"), set(), []
    if not isinstance(tests, list):
        return []
    unique = []
    for test in tests:
        name = f"{test.get('file_path')}::{test.get('id')}" if isinstance(test, dict) else None
        if name in seen:
            duplicates.append(str(name))
            continue
        seen |= {name} if name else set()
        unique.append(test)
    data["tests"] = unique
    return duplicates
