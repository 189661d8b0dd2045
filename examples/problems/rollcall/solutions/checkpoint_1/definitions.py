"""Definitions in syntax trees."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from sources import Sources

type Scope = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Definition(NamedTuple):
    file: str
    line: int
    kind: str
    names: tuple[str, ...]
    """Its own name after those of the definitions around it."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.kind} {'.'.join(self.names)}"

    def is_called(self, name: str) -> bool:
        return name in (self.names[-1], ".".join(self.names))


def definitions_in(sources: Sources) -> list[Definition]:
    return sorted(
        Definition(source.file, node.lineno, kind, names)
        for source in sources
        for node, kind, names in walk(source.tree, None, ())
    )


def walk(
    node: ast.AST, scope: Scope | None, names: tuple[str, ...]
) -> Iterator[tuple[Scope | ast.TypeAlias, str, tuple[str, ...]]]:
    """The definitions below a node that is in `scope`, each with its kind and names."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.TypeAlias(name=ast.Name(id=name)):
                yield child, "type", (*names, name)
                yield from walk(child, scope, names)
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield child, kind_of(child, scope), (*names, name)
                yield from walk(child, child, (*names, name))
            case _:
                yield from walk(child, scope, names)


def kind_of(node: Scope, scope: Scope | None) -> str:
    if isinstance(node, ast.ClassDef):
        return "class"
    return "method" if isinstance(scope, ast.ClassDef) else "function"
