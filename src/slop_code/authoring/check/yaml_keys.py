"""Keys of a YAML file and the lines that they stand in."""

from __future__ import annotations

from pathlib import Path

import yaml

from slop_code._yaml import compose_yaml
from slop_code.authoring.problem_folders import CONFIG
from slop_code.errors import ConfigError

Pair = tuple[yaml.Node, yaml.Node]


def line_of(text: str, key: str) -> int | None:
    """The line of `checkpoints.checkpoint_1.order`; where it is missing, the line of the closest key above it."""
    root = _compose(text)
    pairs = _path(root, key) if root is not None else []
    return pairs[-1][0].start_mark.line + 1 if pairs else None


def keys_of(text: str, key: str) -> list[str]:
    """The keys of the mapping at `key`; an empty `key` stands for the whole file."""
    node = _compose(text)
    pairs = _path(node, key) if node is not None else []
    if key:
        node = pairs[-1][1] if ".".join(name.value for name, _ in pairs) == key else None
    if not isinstance(node, yaml.MappingNode):
        return []
    return [name.value for name, _ in node.value if isinstance(name, yaml.ScalarNode)]


def _compose(text: str) -> yaml.Node | None:
    try:
        return compose_yaml(text, Path(CONFIG))
    except (ConfigError, yaml.YAMLError, ValueError):
        return None


def _path(root: yaml.Node, key: str) -> list[Pair]:
    """The pairs on the way to `key`, as far as they exist; a key may contain dots."""
    path: list[Pair] = []
    node, rest = root, key
    while rest and isinstance(node, yaml.MappingNode):
        matches = [pair for pair in node.value if _is_prefix(pair[0], rest)]
        if not matches:
            break
        pair = max(matches, key=lambda pair: len(pair[0].value))
        path.append(pair)
        node, rest = pair[1], rest[len(pair[0].value) + 1 :]
    return path


def _is_prefix(name: yaml.Node, rest: str) -> bool:
    return isinstance(name, yaml.ScalarNode) and f"{rest}.".startswith(f"{name.value}.")
