"""A stored result as it was found, be it in agreement with itself or not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from slop_code._io import TooLargeError, read_bounded
from slop_code.errors import ResultError
from slop_code.evaluation.report import DERIVED, SIZE_LIMIT, CorrectnessResults, mistake_in

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
    """Unlike `CorrectnessResults.load` it takes a file whose counts and verdicts contradict its tests."""
    try:
        data = json.loads(read_bounded(path, SIZE_LIMIT))
        if not isinstance(data, dict):
            raise ResultError(f"{path}: not a JSON object; {STEP}")
        twice = _take_twice(data)
        rest = {name: value for name, value in data.items() if name not in DERIVED}
        return Document(CorrectnessResults.model_validate(rest), {name: data.get(name) for name in DERIVED}, twice)
    except ValidationError as error:
        raise ResultError(f"{path}: {mistake_in(error, STEP)}") from error
    except TooLargeError as error:
        raise ResultError(f"{path}: larger than {SIZE_LIMIT} bytes; {STEP}") from error
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path}: not JSON; {STEP}") from error


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
