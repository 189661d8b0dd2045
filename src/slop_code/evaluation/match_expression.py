"""Expressions of pytest's `-k` and `-m`: where one is malformed."""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TOKEN = re.compile(r"""[()=,]|'[^'\\]*'|"[^"\\]*"|(?::?\w|[:+\-.\[\]\\/])+""")
VALUE = re.compile(r"""-?\d+|True|False|None|'.*'|".*\"""", re.DOTALL)
OPERATORS = ("and", "or")
NOT_NAMES = (*OPERATORS, "not", "(", ")", "=", ",")
END = ""

Token = tuple[int, str]
"""The column from 1, and the text; END after the last token."""


def expression_mistake(text: str, *, calls: bool) -> str | None:
    """The first mistake with its column; None: pytest takes the expression. `calls`: `name(key=value)` is allowed."""
    try:
        tokens = list(_tokens(text))
        if len(tokens) > 1:
            _check(tokens, calls)
    except ValueError as error:
        return str(error)
    return None


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        if text[position] in " \t":
            position += 1
        elif (match := TOKEN.match(text, position)) is None:
            raise ValueError(f"column {position + 1}: unexpected {text[position]}")
        else:
            yield position + 1, match[0]
            position = match.end()
    yield len(text) + 1, END


def _check(tokens: Sequence[Token], calls: bool) -> None:
    """A loop instead of a parser that calls itself, as parentheses may be nested as deep as the text is long."""
    depth, index, after_operand = 0, 0, False
    while True:
        token = tokens[index]
        text = token[1]
        index += 1
        if not after_operand:
            if text == "(":
                depth += 1
            elif text != "not":
                if not _is_name(text):
                    raise _unexpected("a name, not or (", token)
                after_operand = True
                index = _after_call(tokens, index) if calls and tokens[index][1] == "(" else index
        elif text == ")" and depth:
            depth -= 1
        elif text in OPERATORS:
            after_operand = False
        elif text == END and not depth:
            return
        else:
            raise _unexpected("and, or or )" if depth else "and, or or the end", token)


def _after_call(tokens: Sequence[Token], index: int) -> int:
    """The index after the arguments that begin with the parenthesis at `index`."""
    while True:
        name, equals, value = (tokens[min(index + step, len(tokens) - 1)] for step in (1, 2, 3))
        if not name[1].isidentifier() or keyword.iskeyword(name[1]):
            raise _unexpected("the name of an argument", name)
        if equals[1] != "=":
            raise _unexpected("=", equals)
        if not VALUE.fullmatch(value[1]):
            raise _unexpected("a quoted text, a whole number, True, False or None", value)
        index += 4
        if tokens[index][1] == ")":
            return index + 1
        if tokens[index][1] != ",":
            raise _unexpected(", or )", tokens[index])


def _is_name(text: str) -> bool:
    return text != END and text not in NOT_NAMES and text[0] not in "'\""


def _unexpected(expected: str, token: Token) -> ValueError:
    return ValueError(f"column {token[0]}: expected {expected}; got {token[1] or 'the end'}")
