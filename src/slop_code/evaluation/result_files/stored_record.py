"""Base of the records that are stored as JSON files, and the errors of files that are damaged."""

from __future__ import annotations

import contextlib
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from slop_code._io import TooLargeError, read_bounded, unreadable_text
from slop_code.errors import ResultError

if TYPE_CHECKING:
    from pathlib import Path

SIZE_LIMIT = 512 * 1024 * 1024
MAX_DURATION = 1e15
"""In any unit; small enough that many durations can be added."""
Duration = Annotated[float, Field(ge=0, le=MAX_DURATION)]

_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")
OTHER_VERSION = "other_version"
EDITED = "edited"


def storable(value: Any) -> Any:
    """The same value as strict JSON can hold it, so that what is saved loads back equal."""
    if isinstance(value, str):
        return value if value.isascii() and "\0" not in value else _NOT_TEXT.sub("\ufffd", value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict | Mapping):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value


def check_storable(value: dict[str, Any]) -> dict[str, Any]:
    if value != storable(value):
        raise PydanticCustomError("not_json", "has what no JSON can hold, such as NaN")
    return value


class FrozenRecord(BaseModel):
    """Base of records of numbers and of checked text. They are made by the thousand and need no validation of text."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        json_schema_serialization_defaults_required=True,
        defer_build=True,  # a command needs few of the records
    )


class Stored(FrozenRecord):
    @model_validator(mode="before")
    @classmethod
    def _as_stored(cls, data: Any, info: ValidationInfo) -> Any:
        return data if info.mode == "json" else storable(data)


Record = TypeVar("Record", bound=Stored)


class StoredWhole(Stored):
    """All fields but those of `ADDED` are required in a file. A program may leave out fields that have a default."""

    ADDED: ClassVar[frozenset[str]] = frozenset()
    """Fields that files of earlier versions do not have."""

    @model_validator(mode="after")
    def _has_all_fields(self, info: ValidationInfo) -> Self:
        missing = type(self).model_fields.keys() - self.model_fields_set - self.ADDED
        if info.mode == "json" and missing:
            raise PydanticCustomError("missing", "{name}: Field required", {"name": min(missing)})
        return self


def load_stored(model: type[Record], path: Path, step: str, limit: int = SIZE_LIMIT) -> Record:
    """Reads a record with strict validation. `step` tells the user what to do if the file is damaged."""
    with as_result_errors(path, step, limit):
        return model.model_validate_json(read_bounded(path, limit), strict=True)


@contextlib.contextmanager
def as_result_errors(path: Path, step: str, limit: int = SIZE_LIMIT) -> Iterator[None]:
    """Turns validation and read errors of the block into ResultError."""
    try:
        yield
    except ValidationError as error:
        raise ResultError(f"{path}: {_mistake_in(error, path, step)}", first_mistake(error)) from error
    except TooLargeError as error:
        fact = f"larger than {limit} bytes"
        raise ResultError(f"{path}: {fact}; {step}", fact) from error
    except OSError as error:
        raise ResultError(unreadable_text(error, path), f"cannot be read: {error.strerror}") from error


def _mistake_in(error: ValidationError, path: Path, step: str) -> str:
    kind = error.errors(include_url=False)[0]["type"]
    if kind == EDITED:
        return f"{first_mistake(error)}; slop-code verify {shlex.quote(str(path))} says what was changed"
    return f"{first_mistake(error)}; {f'update slop-code, or {step}' if kind == OTHER_VERSION else step}"


def edited(fact: str) -> PydanticCustomError:
    return PydanticCustomError(EDITED, "{fact}", {"fact": fact})


def first_mistake(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    location = ".".join(str(part) for part in first["loc"])
    message = "an unknown key" if first["type"] == "extra_forbidden" else first["msg"]
    return f"{location}: {message}" if location else message
