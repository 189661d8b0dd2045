"""YAML files that people write, loaded into models; the error has every mistake of a file."""

from __future__ import annotations

import copy
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from slop_code._suggestions import did_you_mean, nearest
from slop_code._yaml_parser import ABSENT, compose_yaml, line_of, named_key, parse_yaml, read_yaml, shown_value
from slop_code.errors import ConfigError, ConfigMistake

if TYPE_CHECKING:
    from enum import StrEnum
    from pathlib import Path

    import yaml

_EXPECTED = {
    "string_type": "text",
    "string_unicode": "text",
    "string_too_short": "text that is not empty",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "greater_than": "a number above {gt:g}",
    "less_than_equal": "a number of at most {le:g}",
    "greater_than_equal": "a number of at least {ge:g}",
    "too_short": "at least {min_length} entry",
    "literal_error": "{expected}",
    "value_error": "{error}",
}


@dataclass(frozen=True, slots=True)
class Mistake:
    """A value of a mapping that is not what is expected there."""

    location: tuple[Hashable, ...]
    """The keys that lead to it."""

    found: Any
    expected: str
    choices: Sequence[str] = ()
    """Values that may be meant, if there are only a few."""


class ChoiceError(ValueError):
    """A value that is none of a few known ones; in a validator, instead of a ValueError."""

    def __init__(self, choices: Sequence[str], expected: str | None = None) -> None:
        super().__init__(expected or f"one of {', '.join(choices)}")
        self.choices = choices


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key of a file that means nothing."""

    key: str
    """With its parents."""

    line: int | None = None
    near: str | None = None
    """The key that may be meant, without parents."""

    def message(self, note: str = "") -> str:
        return f"unknown key {named_key(self.key)}{note}{f'; did you mean {self.near!r}?' if self.near else ''}"


class FileModel(BaseModel):
    """A mapping in a file. A key without a value counts as left out.

    Validators raise `ValueError` with the words that follow "expected".
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", defer_build=True)

    _file: Path | None = PrivateAttr(default=None)
    _unknown_keys: tuple[UnknownKey, ...] = PrivateAttr(default=())

    @property
    def file(self) -> Path | None:
        """The file that it was loaded from, or None if it was not loaded from a file."""
        path: Path | None = self._private("_file")
        return path

    @property
    def unknown_keys(self) -> tuple[UnknownKey, ...]:
        return self._unknown_keys

    @property
    def warnings(self) -> tuple[str, ...]:
        if self.file is None:
            return ()
        return tuple(str(ConfigMistake(self.file, key.message(" (ignored)"), key.line)) for key in self.unknown_keys)

    def _private(self, name: str) -> Any:
        """A private attribute, without the search for descriptors that pydantic makes at each access."""
        return (self.__pydantic_private__ or {})[name]

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, data: Any) -> Any:
        if data is None:
            return {}
        if isinstance(data, Mapping):
            return {key: value for key, value in data.items() if value is not None}
        return data

    @classmethod
    def further_mistakes(cls, data: Mapping[str, Any], folder: Path) -> Iterable[Mistake]:
        """Mistakes that only the whole file or its folder can show; `data` is not validated yet."""
        del data, folder
        return ()


Model = TypeVar("Model", bound=FileModel)


def load_yaml_model(path: Path, model: type[Model]) -> Model:
    text = read_yaml(path)
    data = parse_yaml(text, path)
    mistakes: list[Mistake] = []
    value: Model | None = None
    try:
        value = model.model_validate(data)
    except ValidationError as error:
        mistakes += _mistakes(model, data, error)
    mistakes += model.further_mistakes(data, path.parent)
    unknown = [] if value is None else list(_unknown_keys(data, value))
    root = compose_yaml(text, path) if mistakes or unknown else None
    if mistakes or value is None:
        raise ConfigError(
            mistakes=[_record(mistake, path, root, _misspelt(mistake, model, data)) for mistake in mistakes]
        )
    value._file = path
    value._unknown_keys = tuple(UnknownKey(_dotted(key), line_of(key, root), near) for key, near in unknown)
    return value


def _record(mistake: Mistake, path: Path, root: yaml.Node | None, misspelt: str | None) -> ConfigMistake:
    """`misspelt` is the key in the file that stands for the missing one."""
    *parents, last = mistake.location or ("",)
    location = (*parents, misspelt) if misspelt is not None else mistake.location
    key, found = _dotted(mistake.location), shown_value(mistake.found)
    near = did_you_mean(mistake.found, mistake.choices) if isinstance(mistake.found, str) else ""
    fact = "missing" if mistake.found is ABSENT else f"found {found}"
    message = f"{named_key(key)}: {fact}, expected {mistake.expected}{near}"
    return ConfigMistake(
        path=path,
        message=message if misspelt is None else UnknownKey(_dotted(location), near=str(last)).message(),
        line=line_of(location, root),
        key=key,
        found=None if mistake.found is ABSENT else found,
        expected=mistake.expected,
        misspelt=misspelt,
    )


def _dotted(location: Iterable[Hashable]) -> str:
    return ".".join(map(str, location))


def _misspelt(mistake: Mistake, model: type[FileModel], data: Any) -> str | None:
    """The unknown key that may be meant for a key that is missing."""
    if mistake.found is not ABSENT or not mistake.location:
        return None
    *parents, last = mistake.location
    known = _model_at(model, parents).model_fields
    for step in parents:
        data = data.get(step) if isinstance(data, Mapping) else None
    unknown = [key for key in data if isinstance(key, str) and key not in known] if isinstance(data, Mapping) else []
    return nearest(str(last), unknown)


def _model_at(model: type[FileModel], parents: Iterable[Hashable]) -> type[FileModel]:
    """The model of the mapping at this location. A step that is no field is the name of an entry."""
    for step in parents:
        field = model.model_fields.get(str(step))
        model = (_model_in(field.annotation) if field else None) or model
    return model


def _model_in(annotation: Any) -> type[FileModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, FileModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part))), None)


def _mistakes(model: type[Model], data: dict[str, Any], error: ValidationError) -> Iterator[Mistake]:
    missing = [detail["loc"] for detail in error.errors() if detail["type"] == "missing"]
    if missing:
        # A second look with a value of no type in each gap says what each gap should hold.
        try:
            model.model_validate(_filled(data, missing))
        except ValidationError as full:
            error = full
    for detail in error.errors(include_url=False):
        location, context = detail["loc"], detail.get("ctx", {})
        if location and location[-1] == "[key]":
            location = location[:-1]
        known = _EXPECTED.get(detail["type"])
        expected = known.format_map(context) if known else detail["msg"]
        yield Mistake(location, detail["input"], expected, _choices(context))


def _choices(context: Mapping[str, Any]) -> Sequence[str]:
    """pydantic has the values of a Literal as a text only: `'docker' or 'local'`."""
    if isinstance(error := context.get("error"), ChoiceError):
        return error.choices
    return re.findall("'(.+?)'", str(context.get("expected", "")))


def _filled(data: dict[str, Any], gaps: Iterable[Sequence[Hashable]]) -> dict[str, Any]:
    filled = copy.deepcopy(data)
    for *parents, key in gaps:
        inner: Any = filled
        for parent in parents:
            if isinstance(inner, dict) and inner.get(parent) is None:
                inner[parent] = {}
            inner = inner[parent]
        inner[key] = ABSENT
    return filled


def _unknown_keys(
    data: Any, value: Any, parents: tuple[Hashable, ...] = ()
) -> Iterator[tuple[tuple[Hashable, ...], str | None]]:
    """Each with the key that may be meant. `data`: the file's, from which `value` was made."""
    if not isinstance(data, Mapping):
        return
    for key, inner in data.items():
        location = (*parents, key)
        if isinstance(value, BaseModel):
            fields = type(value).model_fields
            if key not in fields:
                yield location, nearest(str(key), [name for name in fields if name not in data])
            else:
                yield from _unknown_keys(inner, getattr(value, key), location)
        elif isinstance(value, Mapping) and isinstance(value.get(key), BaseModel):
            yield from _unknown_keys(inner, value[key], location)


def ignoring_case(choices: type[StrEnum]) -> BeforeValidator:
    by_name = {choice.value.lower(): choice for choice in choices}

    def choose(value: Any) -> Any:
        if isinstance(value, str) and value.lower() in by_name:
            return by_name[value.lower()]
        raise ChoiceError(list(choices))

    return BeforeValidator(choose)


def matching(pattern: str, expected: str) -> AfterValidator:
    compiled = re.compile(pattern)

    def match(value: str) -> str:
        if compiled.fullmatch(value) is None:
            raise ValueError(expected)
        return value

    return AfterValidator(match)


def relative_path(expected: str) -> AfterValidator:
    """Text that, joined to a folder, names something in it."""

    def check(value: str) -> str:
        parts = value.split("/")
        if not value.strip("./") or value.startswith("/") or ".." in parts or "\0" in value:
            raise ValueError(expected)
        return value

    return AfterValidator(check)


def _number_as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _scalar_as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number_as_text(value)


Text = Annotated[str, BeforeValidator(_number_as_text)]
Environment = dict[
    Annotated[str, matching(r"[^=\0]+", "a name without '='")],
    Annotated[str, BeforeValidator(_scalar_as_text), matching(r"[^\0]*", "text without NUL")],
]
