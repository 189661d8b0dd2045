"""Uses of names in syntax trees."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from sources import Sources


class Use(NamedTuple):
    file: str
    line: int
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.text}"


def uses_in(sources: Sources) -> list[Use]:
    """Each name once for each line, in the order of files and lines."""
    return sorted(
        {
            Use(source.file, line, name, source.lines[line - 1].strip())
            for source in sources
            for node in ast.walk(source.tree)
            for line, name in names_of(node)
        }
    )


def names_of(node: ast.AST) -> Iterator[tuple[int, str]]:
    """The names that the node itself uses, with their lines."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            yield node.lineno, name
        case ast.Attribute(attr=name, ctx=ast.Load(), end_lineno=int(line)):
            yield line, name
        case ast.ImportFrom(names=aliases):
            yield from ((alias.lineno, alias.name) for alias in aliases)
