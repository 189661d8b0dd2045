"""A stored result as it was read, whether it agrees with itself or not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slop_code._io import read_bounded
from slop_code.errors import ResultError
from slop_code.evaluation.report import DERIVED, DERIVED_APART, SIZE_LIMIT, CorrectnessResults, reading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

STEP = "evaluate the snapshot again"


@dataclass(frozen=True, slots=True)
class Document:
    results: CorrectnessResults
    """With what follows from its own tests."""

    derived: Mapping[str, Any]
    """What the file says instead."""

    twice: Sequence[str] = ()
    """Tests that were listed more than once."""


def read_document(path: Path) -> Document:
    """As strict as `CorrectnessResults.load`, but it takes a file whose counts and verdicts contradict its tests."""
    with reading(path, STEP):
        data = _object(path, read_bounded(path, SIZE_LIMIT))
        twice = _take_twice(data)
        rest = json.dumps({name: value for name, value in data.items() if name not in DERIVED})
        results = CorrectnessResults.model_validate_json(rest, strict=True, context=DERIVED_APART)
        return Document(results, {name: data.get(name) for name in DERIVED}, twice)


def _object(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path}: not JSON; {STEP}") from error
    if not isinstance(data, dict):
        raise ResultError(f"{path}: not a JSON object; {STEP}")
    return data


def _take_twice(data: dict[str, Any]) -> list[str]:
    """Tests that are listed twice count once, and are named."""
    tests, seen, twice = data.get("tests"), set(), []
    if not isinstance(tests, list):
        return []
    once = []
    for test in tests:
        name = f"{test.get('file_path')}::{test.get('id')}" if isinstance(test, dict) else None
        if name in seen:
            twice.append(str(name))
            continue
        seen |= {name} if name else set()
        once.append(test)
    data["tests"] = once
    return twice
