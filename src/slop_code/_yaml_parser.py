"""YAML text to plain data and nodes; a mistake is refused with its line."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import yaml

from slop_code._io import TooLargeError, read_bounded
from slop_code.errors import ConfigError, ConfigMistake

if TYPE_CHECKING:
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

ABSENT = object()
"""In place of a value that the file lacks."""

TAB = "a tab; YAML is indented with spaces"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_MERGE = "tag:yaml.org,2002:merge"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_TAG_DOES_NOT_FIT = (ArithmeticError, AttributeError, LookupError)
"""Exceptions of PyYAML for `!!bool maybe`, `!!int ""` and the like."""


def parse_yaml(text: str, path: Path) -> dict[str, Any]:
    try:
        data = _parse(text, path)
    except yaml.MarkedYAMLError as error:
        tab = _tab_at(text, error)
        message = f"not YAML: {str(error.problem)[:300]}" if tab is None else TAB
        raise _refused(path, message, tab or error.problem_mark) from error
    except (yaml.YAMLError, ValueError) as error:
        raise _refused(path, f"not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise _refused(path, f"found {shown_value(data)}, expected a mapping of keys to values")
    return data


def read_yaml(path: Path) -> str:
    if os.path.isdir(path):
        raise _refused(path, "is a folder, expected a YAML file")
    try:
        return read_bounded(path.resolve(), SIZE_LIMIT).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise _refused(path, "no such file; write it, or give another path") from error
    except TooLargeError as error:
        raise _refused(path, f"larger than {SIZE_LIMIT} bytes") from error
    except UnicodeDecodeError as error:
        raise _refused(path, f"not UTF-8 text (byte {error.start})") from error
    except (OSError, RuntimeError) as error:
        step = "; let this user read it" if isinstance(error, PermissionError) else ""
        raise _refused(path, f"cannot be read: {getattr(error, 'strerror', None) or error}{step}") from error


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
    if sum(map(text.count, "-?:[{")) <= DEPTH_LIMIT:  # every level takes one of these characters
        return
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
            raise _refused(path, f"key {shown_value(key.value)} stands in line {line} already", key.start_mark)


def _refused(path: Path, message: str, mark: Any = None) -> ConfigError:
    """A file that is no YAML of ours. `mark` is the position in it."""
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
    return ConfigError(mistakes=[ConfigMistake(path, message, line, column)])


def _tab_at(text: str, error: yaml.MarkedYAMLError) -> yaml.Mark | None:
    """The tab that the error is about: in the indentation of a line that it names, or where it is."""
    end = error.problem_mark
    if end is None:
        return None
    first = error.context_mark.line if error.context_mark is not None else end.line
    lines = text.split("\n")
    for number in range(end.line, first - 1, -1):
        line = lines[number] if number < len(lines) else ""
        column = end.column if number == end.line and line[end.column :].startswith("\t") else None
        if "\t" in (indentation := line[: len(line) - len(line.lstrip())]):
            column = indentation.index("\t")
        if column is not None:
            return yaml.Mark("", 0, number, column, None, 0)
    return None


def line_of(location: Iterable[Hashable], root: yaml.Node | None) -> int | None:
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


def named_key(key: str) -> str:
    """A key as it is written, where that is short and fits into a line."""
    return key if key.isprintable() and len(key) <= 200 else shown_value(key)


def shown_value(value: Any) -> str:
    if value is None or value is ABSENT:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
