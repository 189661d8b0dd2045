"""YAML files as their authors wrote them: where a key stands, and small changes that keep the rest as it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 256 * 1024
DEEPEST = 40
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*")

Pair = tuple[yaml.Node, yaml.Node]


def line_of(text: str, key: str) -> int | None:
    """Where `checkpoints.checkpoint_1.order` stands; the closest key above it where it does not."""
    root = _compose(text)
    pairs = _path(root, key) if root is not None else []
    return pairs[-1][0].start_mark.line + 1 if pairs else None


def keys_of(text: str, key: str) -> list[str]:
    """Those of the mapping at `key`; empty: at the top."""
    node = _compose(text)
    pairs = _path(node, key) if node is not None else []
    if key:
        node = pairs[-1][1] if _joined(pairs) == key else None
    return (
        [name.value for name, _ in node.value if isinstance(name, yaml.ScalarNode)]
        if isinstance(node, yaml.MappingNode)
        else []
    )


def with_key_renamed(text: str, key: str, new: str) -> str | None:
    """None where it is not there, `new` is there already, or the change cannot be made in this way."""
    root = _compose(text)
    pairs = _path(root, key) if root is not None else []
    above, _, last = key.rpartition(".")
    if root is None or not pairs or pairs[-1][0].value != last or _joined(pairs) != key or not PLAIN.fullmatch(new):
        return None
    siblings = pairs[-2][1] if above else root
    if any(one.value == new for one, _ in siblings.value):
        return None
    name = pairs[-1][0]
    changed = text[: name.start_mark.index] + new + text[name.end_mark.index :]

    def rename(data: Any) -> None:
        for part, _ in pairs[:-1]:
            data = data[part.value]
        data[new] = data.pop(last)

    return changed if _differ_by(text, changed, rename) else None


def with_entry(text: str, key: str, entry: str, *, before: str) -> str | None:
    """One more entry for the list at the top-level `key`, which is put above `before` where there is none."""
    root = _compose(text)
    if not isinstance(root, yaml.MappingNode) or root.flow_style or not PLAIN.fullmatch(entry):
        return None
    top = {name.value: (name, value) for name, value in root.value}
    if key in top:
        changed = _with_entry_in(text, *top[key], entry)
    elif before in top:
        changed = _with_list(text, key, entry, top[before][0].start_mark.line)
    else:
        return None

    def add(data: Any) -> None:
        data[key] = [*(data.get(key) or []), entry]

    return changed if changed is not None and _differ_by(text, changed, add) else None


def _with_entry_in(text: str, name: yaml.Node, value: yaml.Node, entry: str) -> str | None:
    start, end = value.start_mark.index, value.end_mark.index
    if start < name.end_mark.index:
        return None
    if isinstance(value, yaml.ScalarNode):
        gap = " " if text[start - 1 : start] == ":" else ""
        return f"{text[:start]}{gap}[{entry}]{text[end:]}"
    if not isinstance(value, yaml.SequenceNode):
        return None
    if not value.value:
        return f"{text[: start + 1]}{entry}{text[start + 1 :]}"
    if any(not isinstance(one, yaml.ScalarNode) or one.style in ("|", ">") for one in value.value):
        return None
    if entry in [one.value for one in value.value]:
        return None
    last = value.value[-1].end_mark
    if value.flow_style:
        comma = re.match(r"\s*,", text[last.index : end])
        place = last.index + (comma.end() if comma else 0)
        return f"{text[:place]}{' ' if comma else ', '}{entry}{text[place:]}"
    line = f"{' ' * value.start_mark.column}- {entry}"
    return _with_lines(text, last.line + 1, [line])


def _with_list(text: str, key: str, entry: str, line: int) -> str:
    """Above `line` (counted from 0) and the comments that belong to it."""
    lines = text.split("\n")
    while line > 0 and lines[line - 1].startswith("#"):
        line -= 1
    return _with_lines(text, line, [f"{key}:", f"  - {entry}"])


def _with_lines(text: str, line: int, new: list[str]) -> str:
    lines = text.split("\n")
    if "\r\n" in text:
        new = [f"{one}\r" for one in new]
    return "\n".join([*lines[:line], *new, *lines[line:]])


def _compose(text: str) -> yaml.Node | None:
    try:
        if len(text) > LONGEST or _depth(text) > DEEPEST:
            return None
        found: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return found


def _depth(text: str) -> int:
    """Told by events, which are flat: nodes are built by recursion."""
    depth = deepest = 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        deepest = max(deepest, depth)
        if deepest > DEEPEST:
            break
    return deepest


def _path(root: yaml.Node, key: str) -> list[Pair]:
    """The pairs on the way to a key, as far as they are there; a key may have dots of its own."""
    found: list[Pair] = []
    node, rest = root, key
    while rest and isinstance(node, yaml.MappingNode):
        fitting = [pair for pair in node.value if _fits(pair[0], rest)]
        if not fitting:
            break
        pair = max(fitting, key=lambda one: len(one[0].value))
        found.append(pair)
        node, rest = pair[1], rest[len(pair[0].value) + 1 :]
    return found


def _fits(name: yaml.Node, rest: str) -> bool:
    return isinstance(name, yaml.ScalarNode) and f"{rest}.".startswith(f"{name.value}.")


def _joined(pairs: list[Pair]) -> str:
    return ".".join(name.value for name, _ in pairs)


def _differ_by(old: str, new: str, change: Callable[[Any], None]) -> bool:
    """Whether the new text says what the old one says after that change: nothing else was touched."""
    try:
        wanted, found = yaml.safe_load(old), yaml.safe_load(new)
        change(wanted)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, KeyError, AttributeError):
        return False
    return bool(wanted == found)
