"""Edits for each kind of node of a Python syntax tree."""

from __future__ import annotations

import ast
import itertools
import math
import re
from typing import TYPE_CHECKING

from slop_code.authoring.check.python_sources import Definition
from slop_code.authoring.check.strength.mutant import Edit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MAX_STATEMENT_LINES = 3
"""Longer statements are not removed, as their diff would be too long to read."""

MAX_NUMBER = 10**15
_LINE = re.compile(r"\r\n|\n|\r")
_QUOTE = re.compile(r"""[A-Za-z]{0,2}("{3}|'{3}|"|')""")
_COMPARISONS: Mapping[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
_ARITHMETIC: Mapping[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}


class Positions:
    """Character offsets for the lines and byte columns of a syntax tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in _LINE.finditer(text))]

    def at(self, line: int, column: int) -> int:
        start = self._starts[line - 1]
        return start + len(self.text[start : start + column].encode()[:column].decode(errors="ignore"))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        start = self.at(node.lineno, node.col_offset)
        return start, self.at(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def between(self, left: ast.expr, right: ast.expr, pattern: str) -> tuple[int, int] | None:
        """The span of an operator, among parentheses and comments."""
        start, end = self.span(left)[1], self.span(right)[0]
        code = re.sub(r"#[^\r\n]*", lambda comment: " " * len(comment[0]), self.text[start:end])
        match = re.search(pattern, code)
        return (start + match.start(), start + match.end()) if match else None


def edits_of(node: ast.AST, where: Positions) -> Iterator[Edit]:
    for kind in type(node).__mro__:
        if make := _MAKERS.get(kind):
            yield from make(node, where)


def _comparison(node: ast.Compare, where: Positions) -> Iterator[Edit]:
    for (left, right), op in zip(itertools.pairwise([node.left, *node.comparators]), node.ops, strict=True):
        pattern, new = _COMPARISONS[type(op)]
        if span := where.between(left, right, pattern):
            yield Edit(*span, new, "comparison")


def _arithmetic(node: ast.BinOp, where: Positions) -> Iterator[Edit]:
    if _is_text(node.left) or _is_text(node.right):
        return  # concatenation or formatting: another operator would only crash
    old, new = _ARITHMETIC.get(type(node.op), ("", ""))
    if old and (span := where.between(node.left, node.right, re.escape(old))):
        yield Edit(*span, new, "arithmetic")


def _in_place(node: ast.AugAssign, where: Positions) -> Iterator[Edit]:
    old, new = _ARITHMETIC.get(type(node.op), ("", ""))
    if old and (span := where.between(node.target, node.value, re.escape(f"{old}="))):
        yield Edit(*span, f"{new}=", "arithmetic")
    yield from _removal(node, where)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _boolean(node: ast.BoolOp, where: Positions) -> Iterator[Edit]:
    old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    for left, right in itertools.pairwise(node.values):
        if span := where.between(left, right, old):
            yield Edit(*span, new, "boolean")


def _unary(node: ast.UnaryOp, where: Positions) -> Iterator[Edit]:
    start, end = where.span(node)
    if match := re.match(r"not\b\s*|-\s*", where.text[start:end]):
        yield Edit(start, start + match.end(), "", "negation")


def _constant(node: ast.Constant, where: Positions) -> Iterator[Edit]:
    start, end = where.span(node)
    match node.value:
        case bool(value):
            yield Edit(start, end, str(not value), "constant")
        case int(value) | float(value) if math.isfinite(value) and abs(value) < MAX_NUMBER:
            yield Edit(start, end, repr(value + 1), "number")
            if value >= 1:
                yield Edit(start, end, repr(value - 1), "number")
        case str() | bytes():
            yield from _text(node, where)


def _text(node: ast.Constant | ast.JoinedStr, where: Positions) -> Iterator[Edit]:
    start, end = where.span(node)
    if match := _QUOTE.match(where.text[start:end]):
        yield Edit(start + match.end(), start + match.end(), "~", "text")


def _condition(node: ast.If | ast.While | ast.IfExp, where: Positions) -> Iterator[Edit]:
    """A condition that is a single comparison or `not` has an edit of its own."""
    plain = isinstance(node.test, ast.Compare) and len(node.test.ops) == 1
    negated = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
    if not (plain or negated or isinstance(node.test, ast.Constant)):
        start, end = where.span(node.test)
        yield Edit(start, end, f"not ({where.text[start:end]})", "condition")


def _removal(node: ast.stmt, where: Positions) -> Iterator[Edit]:
    if _is_short(node):
        yield Edit(*where.span(node), "pass", "statement")


def _statement(node: ast.Expr, where: Positions) -> Iterator[Edit]:
    if isinstance(node.value, ast.Call):
        yield from _removal(node, where)


def _assignment(node: ast.Assign | ast.AnnAssign, where: Positions) -> Iterator[Edit]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if node.value is None:
        return
    if all(isinstance(target, ast.Attribute | ast.Subscript) for target in targets):
        yield from _removal(node, where)
    elif not isinstance(node.value, ast.Constant) and _is_short(node.value):
        yield Edit(*where.span(node.value), "None", "assignment")


def _result(node: ast.Return, where: Positions) -> Iterator[Edit]:
    if node.value and not (isinstance(node.value, ast.Constant) and node.value.value is None) and _is_short(node):
        yield Edit(*where.span(node), "return None", "result")


def _is_short(node: ast.expr | ast.stmt) -> bool:
    return (node.end_lineno or node.lineno) - node.lineno < MAX_STATEMENT_LINES


def _loop(node: ast.For | ast.AsyncFor, where: Positions) -> Iterator[Edit]:
    if isinstance(node, ast.For) and _is_short(node.iter):
        yield Edit(*where.span(node.iter), "()", "loop")


def _jump(node: ast.Break | ast.Continue, where: Positions) -> Iterator[Edit]:
    yield Edit(*where.span(node), "continue" if isinstance(node, ast.Break) else "break", "loop")


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, where: Positions) -> Iterator[Edit]:
    """A function of several statements returns at once."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if len(body) < 2 or body[0].lineno == node.lineno:
        return
    first = body[0]
    decorators = first.decorator_list if isinstance(first, Definition) else []
    line = min([first.lineno, *(decorator.lineno for decorator in decorators)])
    start = where.at(line, first.col_offset)
    indent = where.text[where.at(line, 0) : start]
    if not indent.strip():
        yield Edit(start, start, f"return\n{indent}", "function")


_MAKERS: Mapping[type, Callable[..., Iterator[Edit]]] = {
    ast.Compare: _comparison,
    ast.BinOp: _arithmetic,
    ast.AugAssign: _in_place,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
    ast.Constant: _constant,
    ast.JoinedStr: _text,
    ast.If: _condition,
    ast.While: _condition,
    ast.IfExp: _condition,
    ast.Expr: _statement,
    ast.Delete: _removal,
    ast.Raise: _removal,
    ast.Assign: _assignment,
    ast.AnnAssign: _assignment,
    ast.Return: _result,
    ast.For: _loop,
    ast.AsyncFor: _loop,
    ast.Break: _jump,
    ast.Continue: _jump,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
}
