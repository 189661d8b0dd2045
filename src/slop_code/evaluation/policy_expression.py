"""Policies as expressions: `core == 1 and regression >= 95%`.

    either     = both {"or" both}
    both       = term {"and" term}
    term       = "not" term | "(" either ")" | side relation side
    side       = number ["%"] | name | name "." count
    relation   = "==" | "!=" | "<" | "<=" | ">" | ">="

A name is that of a group, or `all` for every test. A name without a count is the share of its tests that passed. A
comparison with such a share is ignored if there are no tests of this name. A count is `passed`, `failed` (every test
that did not pass) or `total`, and is 0 if there are no tests. A policy fails if all its comparisons are ignored, or if
the groups that it names have no tests at all.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from slop_code._suggestions import did_you_mean, near_or_known
from slop_code.errors import UsageError
from slop_code.evaluation.groups import GroupType

MAX_LENGTH = 1000
MAX_DEPTH = 50
EVERY = "all"
GROUPS: dict[str, tuple[GroupType, ...]] = {
    **{group.value.lower(): (group,) for group in GroupType},
    EVERY: tuple(GroupType),
}
COUNTS = ("passed", "failed", "total")
RELATIONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_WORDS = ("and", "or", "not")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})(?: ?%)?)(?![\w.])"
    r"|(?P<name>[A-Za-z][\w-]*(?:\.[A-Za-z]\w*)?)|(?P<sign>==|!=|<=|>=|[<>()])|(?P<wrong>\S))",
    re.ASCII,
)

Counts = Mapping[GroupType, int]
Tree = Callable[[Counts, Counts], bool | None]
"""Whether a part of the expression holds; None if it is ignored because there are no such tests."""
Figure = Callable[[Counts, Counts], Fraction | None]


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    kind: str
    column: int
    """Counted from 1."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a comparison."""

    token: _Token
    figure: Figure
    number: Fraction | None = None
    share: bool = False


class Expression(str):
    """The text of an expression, with its parsed form."""

    _tree: Tree
    _groups: frozenset[GroupType]

    def __new__(cls, text: str, names: Sequence[str] = ()) -> Expression:
        """`names` are the names of policies, which an error may suggest instead."""
        expression = super().__new__(cls, re.sub(r"\s", " ", text).strip())
        parser = _Parser(expression, names)
        expression._tree, expression._groups = parser.parse(), frozenset(parser.groups)
        return expression

    def __reduce__(self) -> tuple[type[Expression], tuple[str]]:
        return Expression, (str(self),)

    def holds(self, pass_counts: Counts, total_counts: Counts) -> bool:
        tests = sum(total_counts.get(group, 0) for group in self._groups)
        return tests > 0 and self._tree(pass_counts, total_counts) is True


class _Parser:
    def __init__(self, text: str, names: Sequence[str]) -> None:
        self.text = text
        self.names = names
        if len(text) > MAX_LENGTH:
            raise UsageError(f"policy: longer than {MAX_LENGTH} characters; shorten it")
        self.tokens = [_token(match) for match in _TOKEN.finditer(text)]
        self.position = 0
        self.depth = 0
        self.groups: set[GroupType] = set()

    def parse(self) -> Tree:
        if len(self.tokens) == 1 and self.tokens[0].kind == "name":
            self._lone_name()
        tree = self._disjunction()
        if self._next is not None:
            self._fail("expected `and` or `or`")
        return tree

    @property
    def _next(self) -> _Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def _take(self, *texts: str) -> str | None:
        token = self._next
        if token is None or token.text.lower() not in texts:
            return None
        self.position += 1
        return token.text.lower()

    def _disjunction(self) -> Tree:
        return self._joined("or", self._conjunction, any)

    def _conjunction(self) -> Tree:
        return self._joined("and", self._term, all)

    def _joined(self, word: str, part: Callable[[], Tree], join: Callable[[list[bool]], bool]) -> Tree:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else lambda *counts: _joined(join, [tree(*counts) for tree in parts])

    def _term(self) -> Tree:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self._fail(f"nested more than {MAX_DEPTH} deep")
        try:
            if self._take("not"):
                inner = self._term()
                return lambda *counts: None if (said := inner(*counts)) is None else not said
            if self._take("("):
                inside = self._disjunction()
                if not self._take(")"):
                    self._fail("expected `and`, `or` or `)`")
                return inside
            return self._comparison()
        finally:
            self.depth -= 1

    def _comparison(self) -> Tree:
        begin = self._next
        left = self._side()
        relation = self._take(*RELATIONS)
        if relation is None:
            self._fail(f"expected one of {' '.join(RELATIONS)}")
        right = self._side()
        if left.number is not None and right.number is not None:
            self._fail("this compares two numbers; name a group", begin)
        for side, other in ((left, right), (right, left)):
            if side.share and other.number is not None and other.number > 1:
                meant = (
                    f"; did you mean '{other.token.text}%'?" if other.number > 2 and "%" not in other.token.text else ""
                )
                self._fail(f"a share is from 0 to 1{meant}", other.token)
        compare = RELATIONS[relation]

        def tree(*counts: Counts) -> bool | None:
            sides = left.figure(*counts), right.figure(*counts)
            return None if sides[0] is None or sides[1] is None else compare(sides[0], sides[1])

        return tree

    def _side(self) -> _Side:
        token = self._next
        if token is None or token.kind not in ("number", "name") or token.text.lower() in _WORDS:
            self._fail("expected a group or a number")
        self.position += 1
        if token.kind == "number":
            number = Fraction(token.text.rstrip("%")) / (100 if token.text.endswith("%") else 1)
            return _Side(token, lambda *_: number, number=number)
        name, _, count = token.text.lower().partition(".")
        if name not in GROUPS:
            self._fail(f"no group {token.text.partition('.')[0]!r}{near_or_known(name, GROUPS)}", token)
        if count and count not in COUNTS:
            self._fail(f"no count {count!r}{near_or_known(count, COUNTS)}", token)
        self.groups.update(GROUPS[name])
        return _Side(token, _figure(GROUPS[name], count), share=not count)

    def _lone_name(self) -> None:
        name = self.tokens[0].text
        meant = did_you_mean(name, [*self.names, *GROUPS])
        if name.lower() in GROUPS:
            meant = f": a group by itself decides nothing; write {name + ' == 1'!r}, for one"
        known = f"there are {', '.join(self.names)}, and expressions such as 'core == 1 and regression >= 95%'"
        raise UsageError(f"no policy {name!r}{meant} ({known})")

    def _fail(self, expected: str, at: _Token | None = None) -> NoReturn:
        token = at or self._next
        column = token.column if token else len(self.text) + 1
        what = f", found {token.text!r}" if token and at is None else ", found the end" if at is None else ""
        pointer = f"  {self.text}\n  {' ' * (column - 1)}^"
        raise UsageError(f"policy, column {column}: {expected}{what}\n{pointer}")


def _token(match: re.Match[str]) -> _Token:
    kind = match.lastgroup or "wrong"
    return _Token(match.group(kind), kind, match.start(kind) + 1)


def _joined(join: Callable[[list[bool]], bool], values: Sequence[bool | None]) -> bool | None:
    known = [value for value in values if value is not None]
    return join(known) if known else None


def _figure(groups: Sequence[GroupType], count: str) -> Figure:
    def figure(pass_counts: Counts, total_counts: Counts) -> Fraction | None:
        passed = sum(pass_counts.get(group, 0) for group in groups)
        total = sum(total_counts.get(group, 0) for group in groups)
        if not count:
            return Fraction(passed, total) if total else None
        return Fraction({"passed": passed, "failed": total - passed, "total": total}[count])

    return figure
