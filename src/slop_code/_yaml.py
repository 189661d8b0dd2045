"""YAML files that people write, loaded into models; the error has every mistake of a file."""

from __future__ import annotations

import copy
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from slop_code._io import TooLargeError, read_bounded
from slop_code.errors import ConfigError, ConfigMistake

if TYPE_CHECKING:
    from enum import StrEnum
    from pathlib import Path

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

SIZE_LIMIT = 1 << 20
DEPTH_LIMIT = 40
NODE_LIMIT = 100_000
NUMBER_LIMIT = 1000
"""Characters of a number: longer ones take long to read, and cannot be shown."""

_ABSENT = object()
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_MERGE = "tag:yaml.org,2002:merge"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_TAG_DOES_NOT_FIT = (ArithmeticError, AttributeError, LookupError)
"""What PyYAML raises for `!!bool maybe`, `!!int ""` and the like."""

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


class FileModel(BaseModel):
    """A mapping in a file. A key without a value counts as left out.

    Validators raise `ValueError` with the words that follow "expected".
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    _file: Path | None = PrivateAttr(default=None)
    _unknown_keys: tuple[str, ...] = PrivateAttr(default=())

    @property
    def file(self) -> Path | None:
        """None: it was not loaded from a file."""
        return self._file

    @property
    def unknown_keys(self) -> tuple[str, ...]:
        """Keys of the file that mean nothing here, each with its parents."""
        return self._unknown_keys

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(f"{self.file}: unknown key {_named(key)} (ignored)" for key in self.unknown_keys)

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
    text = _read_text(path)
    data = parse_yaml(text, path)
    mistakes: list[Mistake] = []
    value: Model | None = None
    try:
        value = model.model_validate(data)
    except ValidationError as error:
        mistakes += _mistakes(model, data, error)
    mistakes += model.further_mistakes(data, path.parent)
    if mistakes or value is None:
        root = _Loader(text).get_single_node()
        raise ConfigError(mistakes=[_record(mistake, path, root) for mistake in mistakes])
    value._file, value._unknown_keys = path, tuple(_unknown_keys(data, value))
    return value


def _record(mistake: Mistake, path: Path, root: yaml.Node | None) -> ConfigMistake:
    key = ".".join(map(str, mistake.location))
    found = _shown(mistake.found)
    return ConfigMistake(
        path=path,
        message=f"{_named(key)}: found {found}, expected {mistake.expected}",
        line=_line_of(mistake.location, root),
        key=key,
        found=None if mistake.found is _ABSENT else found,
        expected=mistake.expected,
    )


def _line_of(location: Iterable[Hashable], root: yaml.Node | None) -> int | None:
    """The line of the last key that exists."""
    node, line = root, None
    for step in location:
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
            continue
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        pair = next((pair for pair in pairs if pair[0].value == str(step)), None)
        if pair is None:
            break
        line, node = pair[0].start_mark.line + 1, pair[1]
    return line


def parse_yaml(text: str, path: Path) -> dict[str, Any]:
    try:
        data = _parse(text, path)
    except yaml.MarkedYAMLError as error:
        raise _refused(path, f"not YAML: {str(error.problem)[:300]}", error.problem_mark) from error
    except (yaml.YAMLError, ValueError) as error:
        raise _refused(path, f"not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise _refused(path, f"found {_shown(data)}, expected a mapping of keys to values")
    return data


def _read_text(path: Path) -> str:
    if path.is_dir():
        raise _refused(path, "is a folder, expected a YAML file")
    try:
        return read_bounded(path.resolve(), SIZE_LIMIT).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise _refused(path, "no such file") from error
    except TooLargeError as error:
        raise _refused(path, f"larger than {SIZE_LIMIT} bytes") from error
    except UnicodeDecodeError as error:
        raise _refused(path, f"not UTF-8 text (byte {error.start})") from error
    except (OSError, RuntimeError) as error:
        raise _refused(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _decimal(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """Nothing with a colon: to YAML 1.1 a user 33:33 is the number 2013, counted in sixties."""
    return re.compile(f"(?!.*:){pattern.pattern}", pattern.flags)


class _Loader(_SafeLoader):
    """Dates stay text: no key of ours is a date, and a version may look like a date."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, _decimal(pattern)) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in _SafeLoader.yaml_implicit_resolvers.items()
    }


def _parse(text: str, path: Path) -> Any:
    _refuse_depth(text, path)
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_duplicates(node, path)
        return loader.construct_document(node)
    except _TAG_DOES_NOT_FIT as error:
        raise _refused(path, "not YAML: a tag that does not fit its value") from error
    finally:
        loader.dispose()


def _refuse_depth(text: str, path: Path) -> None:
    """The C parser builds nodes by recursion and dies with the process on a deep file; events are flat."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEPTH_LIMIT:
            raise _refused(path, f"nested deeper than {DEPTH_LIMIT} levels", event.start_mark)


def compose_yaml(text: str, path: Path) -> yaml.Node | None:
    """The nodes of a file, with their lines."""
    _refuse_depth(text, path)
    root: yaml.Node | None = _Loader(text).get_single_node()
    return root


def _refuse_duplicates(root: yaml.Node, path: Path) -> None:
    """Aliases are walked each time they are used, so that an alias that multiplies itself is refused as well."""
    waiting, seen = [root], 0
    while waiting:
        node = waiting.pop()
        seen += 1
        if seen > NODE_LIMIT:
            raise _refused(path, f"aliases make it larger than {NODE_LIMIT} values")
        if isinstance(node, yaml.MappingNode):
            _refuse_duplicate_keys(node, path)
            waiting += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif node.tag in _NUMBERS and len(node.value) > NUMBER_LIMIT:
            raise _refused(path, f"a number of more than {NUMBER_LIMIT} characters", node.start_mark)


def _refuse_duplicate_keys(node: yaml.MappingNode, path: Path) -> None:
    first: dict[tuple[str, str], yaml.Node] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
            continue
        earlier = first.setdefault((key.tag, key.value), key)
        if earlier is not key:
            line = earlier.start_mark.line + 1
            raise _refused(path, f"key {_shown(key.value)} stands in line {line} already", key.start_mark)


def _refused(path: Path, message: str, mark: Any = None) -> ConfigError:
    """A file that is no YAML of ours; `mark`: the position in it."""
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
    return ConfigError(mistakes=[ConfigMistake(path, message, line, column)])


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
        yield Mistake(location, detail["input"], expected)


def _filled(data: dict[str, Any], gaps: Iterable[Sequence[Hashable]]) -> dict[str, Any]:
    filled = copy.deepcopy(data)
    for *parents, key in gaps:
        inner: Any = filled
        for parent in parents:
            if isinstance(inner, dict) and inner.get(parent) is None:
                inner[parent] = {}
            inner = inner[parent]
        inner[key] = _ABSENT
    return filled


def _unknown_keys(data: Any, value: Any, prefix: str = "") -> Iterator[str]:
    """`data` as it stands in the file beside the value that was made of it."""
    if not isinstance(data, Mapping):
        return
    for key, inner in data.items():
        if isinstance(value, BaseModel):
            if key not in type(value).model_fields:
                yield f"{prefix}{key}"
            else:
                yield from _unknown_keys(inner, getattr(value, key), f"{prefix}{key}.")
        elif isinstance(value, Mapping) and isinstance(value.get(key), BaseModel):
            yield from _unknown_keys(inner, value[key], f"{prefix}{key}.")


def _named(key: str) -> str:
    """A key as it is written, where that is short and fits into a line."""
    return key if key.isprintable() and len(key) <= 200 else _shown(key)


def _shown(value: Any) -> str:
    if value is None or value is _ABSENT:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def ignoring_case(choices: type[StrEnum]) -> BeforeValidator:
    by_name = {choice.value.lower(): choice for choice in choices}

    def choose(value: Any) -> Any:
        if isinstance(value, str) and value.lower() in by_name:
            return by_name[value.lower()]
        raise ValueError(f"one of {', '.join(choices)}")

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
