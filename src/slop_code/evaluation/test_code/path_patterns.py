"""Path patterns: the constant parts of the paths in a Python file's expressions, and the files that they match.

`*` stands for a part that only the running program knows: `HERE / "oracle" / "solve.py"` is `*/oracle/solve.py`. A
pattern that does not begin with it is relative to the working directory.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code.execution.sandbox import TESTS_DIR

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

ANY = "*"
TEMPORARY = "~"
"""Folder of temporary files. The submission sees everything in it, so nothing there is secret."""

TEMPORARY_FIXTURES = frozenset({"tmp_path", "tmpdir"})
JOINING = frozenset({"str", "Path", "PurePath", "join", "fspath"})
JOINING_METHODS = frozenset({"joinpath", "resolve", "absolute", "as_posix"})
PLACEHOLDER = re.compile(r"%[a-z]|\{[^{}]*\}")
MAX_DEPTH = 3


def patterns_of(node: ast.AST, values: Mapping[str, Sequence[ast.expr]], depth: int = MAX_DEPTH) -> set[str]:
    """Patterns of an expression; `values` are the expressions that are assigned to each variable."""
    inner = functools.partial(patterns_of, values=values, depth=depth)
    match node:
        case ast.Constant(value=str(text)):
            text = PLACEHOLDER.sub(ANY, text)
            return {ANY + text if text.startswith("/") else text}
        case ast.BinOp(left, ast.Div(), right):
            return _joined([inner(left), inner(right)])
        case ast.Call(ast.Attribute(folder, name), arguments) if name in JOINING_METHODS:
            return _joined([inner(folder), *map(inner, arguments)])
        case ast.Call(ast.Attribute(attr="with_name"), [sibling]):
            return _joined([{ANY}, inner(sibling)])
        case ast.Call(ast.Attribute(attr=name) | ast.Name(name), [_, *_] as arguments) if name in JOINING:
            return _joined(list(map(inner, arguments)))
        case ast.JoinedStr(parts):
            return {"".join(_text_of(part) or min(inner(part)) for part in parts)}
        case ast.FormattedValue(value):
            return inner(value)
        case ast.Name(name) if name in TEMPORARY_FIXTURES:
            return {TEMPORARY}
        case ast.Name(name) if depth and values.get(name):
            return {text for value in values[name] for text in patterns_of(value, values, depth - 1)}
    return {ANY}


def patterns_in(node: ast.AST, values: Mapping[str, Sequence[ast.expr]]) -> Iterator[str]:
    """Patterns of the largest expressions in `node` that name files by constants."""
    patterns = patterns_of(node, values)
    yield from patterns
    if not all(map(has_constant_name, patterns)):
        for child in ast.iter_child_nodes(node):
            yield from patterns_in(child, values)


def join(folder: str, path: str) -> str:
    return path if not folder or (path.startswith((ANY, TEMPORARY)) and path != ANY) else f"{folder}/{path}"


def has_constant_name(pattern: str) -> bool:
    return ANY not in pattern.rpartition("/")[2]


def matching_files(
    pattern: str, folders: Iterable[PurePosixPath], known: Collection[PurePosixPath]
) -> set[PurePosixPath]:
    """The known files that a pattern may name: by the parts after its last unknown part.

    `folders` are those of the files that pytest loads. A relative pattern is looked up there only, and so is a file
    name without any other constant part, if it is there.
    """
    parts = PurePosixPath(pattern).parts
    if TEMPORARY in parts:
        return set()
    unknown = [index for index, part in enumerate(parts) if ANY in part or part in ("..", TESTS_DIR)]
    parts = parts[unknown[-1] + 1 :] if unknown else parts
    nearby = {folder.joinpath(*parts) for folder in folders} & {*known}
    if not unknown or (nearby and len(parts) == 1):
        return nearby
    return {file for file in known if file.parts[-len(parts) :] == parts}


def _text_of(part: ast.expr) -> str:
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""


def _joined(parts: Iterable[Iterable[str]]) -> set[str]:
    return functools.reduce(lambda left, right: {join(folder, path) for folder in left for path in right}, parts, {""})
