"""Quarantine of flaky tests: they run and are reported, but count in no policy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from slop_code._io import TooLargeError, read_bounded, write_atomic
from slop_code.errors import ConfigError, ConfigMistake
from slop_code.evaluation.result_files.stored_record import first_mistake

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig

QUARANTINE_FILE = "flaky.json"
"""Name of the file in the tests folder."""

SIZE_LIMIT = 4 << 20
EXPECTED = '{"schema_version": 1, "tests": [{"test": "FILE::ID", "reason": "…"}]}'


class QuarantinedTest(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    test: Annotated[str, Field(pattern=r"^[^:]+\.py::.+$")]
    """`file::id`, relative to the tests folder. A class covers its tests, and a function all its parameters."""

    reason: str = ""

    def covers(self, nodeid: str) -> bool:
        return nodeid == self.test or nodeid.startswith((f"{self.test}[", f"{self.test}::"))


class Quarantine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    schema_version: Literal[1] = 1
    tests: tuple[QuarantinedTest, ...] = ()

    def covers(self, nodeid: str) -> bool:
        return any(entry.covers(nodeid) for entry in self.tests)

    def save(self, path: Path) -> None:
        write_atomic(path, json.dumps(self.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n")


def quarantine_path(problem: ProblemConfig) -> Path:
    return problem.path / "tests" / QUARANTINE_FILE


def read_quarantine(problem: ProblemConfig) -> Quarantine:
    """The problem's quarantine; an empty one if there is no file."""
    path = quarantine_path(problem)
    try:
        return Quarantine.model_validate_json(read_bounded(path, SIZE_LIMIT), strict=True)
    except FileNotFoundError:
        return Quarantine()
    except ValidationError as error:
        raise _refused(path, f"{first_mistake(error)}; expected {EXPECTED}") from error
    except TooLargeError as error:
        raise _refused(path, f"larger than {SIZE_LIMIT} bytes") from error
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}") from error


def _refused(path: Path, message: str) -> ConfigError:
    return ConfigError(mistakes=[ConfigMistake(path, message)])


def line_in_quarantine(problem: ProblemConfig, test: str) -> int | None:
    """The number of the line that has the entry with this name."""
    try:
        text = read_bounded(quarantine_path(problem), SIZE_LIMIT).decode("utf-8", "replace")
    except (OSError, TooLargeError):
        return None
    position = text.find(json.dumps(test, ensure_ascii=False))
    return text.count("\n", 0, position) + 1 if position >= 0 else None
