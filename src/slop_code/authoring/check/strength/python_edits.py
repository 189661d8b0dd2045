"""Edits of Python text, by its syntax tree; a diff has a line or two."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING, Any

from slop_code.authoring.check.strength.node_edits import Positions, edits_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.check.strength.mutant import Edit

_NO_BEHAVIOUR = frozenset({"help", "description", "epilog", "usage", "metavar", "encoding"})
_LOGGERS = frozenset({"log", "_log", "logger", "_logger", "logging", "warnings"})


def python_edits(text: str) -> list[Edit]:
    """In the order of the text; empty where Python cannot parse it."""
    tree: ast.Module | None = _compile(text, ast.PyCF_ONLY_AST)
    if tree is None:
        return []
    where = Positions(text)
    return sorted({edit for node in _worth_changing(tree) for edit in edits_of(node, where)})


def compiles(text: str) -> bool:
    return _compile(text) is not None


def _compile(text: str, flags: int = 0) -> Any:
    """None where Python cannot compile the text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compile(text, "mutant", "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _worth_changing(tree: ast.AST) -> Iterator[ast.AST]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if not _is_unobserved(node):
            yield node
            waiting += _children(node)


def _is_unobserved(node: ast.AST) -> bool:
    """Code that tests do not observe: imports, docstrings, types, logs, the main guard."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.arg() | ast.Global() | ast.Nonlocal():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__")) | ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name.startswith("__") or (_is_type_name(name) and _is_type(value))
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in _LOGGERS
        case ast.keyword(arg=name):
            return name in _NO_BEHAVIOUR
    return False


def _is_type_name(name: str) -> bool:
    return name[:1].isupper() and not name.isupper()


def _is_type(value: ast.expr) -> bool:
    return isinstance(value, ast.Subscript | ast.Name | ast.Attribute | ast.BinOp)


def _children(node: ast.AST) -> list[ast.AST]:
    match node:
        case ast.FunctionDef(args=args, body=body) | ast.AsyncFunctionDef(args=args, body=body):
            return [*args.defaults, *(value for value in args.kw_defaults if value), *body]
        case ast.ClassDef(body=body):
            return [*body]
        case ast.AnnAssign(value=value):
            return [value] if value else []
        case ast.JoinedStr():  # some versions of Python give wrong positions inside f-strings
            return []
        case _:
            return list(ast.iter_child_nodes(node))
