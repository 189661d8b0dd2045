"""Mutants of any other language, by the look of its lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slop_code.authoring.mutants.edit import Edit

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_LINE = 1000
"""A longer one was written by a program."""

_SHELL = re.compile(r"\.(sh|bash|ksh|zsh)$")
_SHELL_LINE = re.compile(r"#!.*\b(ba|k|z|da)?sh\b")
_SLASHES = re.compile(r"\.(c|h|cc|cpp|hpp|cs|go|java|js|mjs|cjs|jsx|ts|tsx|kt|rs|scala|swift|php|dart|zig|d)$")
_DASHES = re.compile(r"\.(lua|sql|hs|ada|adb|elm)$")

_SWAPS = (
    ("comparison", r"==", "!="),
    ("comparison", r"!=(?!=)", "=="),
    ("comparison", r"(?<![<=-])<=(?![=>])", "<"),
    ("comparison", r"(?<![>=-])>=(?![=>])", ">"),
    ("boolean", r"&&", "||"),
    ("boolean", r"\|\|", "&&"),
    ("arithmetic", r"(?<=\s)\+(?=\s)", "-"),
    ("arithmetic", r"(?<=\s)-(?=\s)", "+"),
    ("arithmetic", r"\+=", "-="),
    ("arithmetic", r"-=", "+="),
    ("arithmetic", r"\+\+", "--"),
    ("constant", r"\btrue\b", "false"),
    ("constant", r"\bfalse\b", "true"),
)
_NO_SHELL_SWAPS = (
    ("comparison", r"(?<=\s)<(?=\s)", "<="),
    ("comparison", r"(?<=\s)>(?=\s)", ">="),
)
_SHELL_WORDS = {"eq": "ne", "ne": "eq", "lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "z": "n", "n": "z"}
_SHELL_SWAPS = (
    *(("comparison", rf"(?<=\s)-{old}(?=\s)", f"-{new}") for old, new in _SHELL_WORDS.items()),
    ("comparison", r"(?<=\s)=(?=\s)", "!="),
)
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))
_NUMBER = re.compile(r"(?<![\w.&#])(?<!\d-)\d{1,15}(?![\w.<>]|-\d)")
"""No range of characters, no descriptor of a shell."""

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')
_LEFT = re.compile(r"\s*(import|from|package|use|using|require|include|module|mod|export|set|#)\b")
_STRUCTURE = re.compile(r"[\s{}()\[\];,]*(else|fi|done|esac|end|do|then|break;;|;;|\}|\{)?[\s{}()\[\];,]*")
_GOES_ON = re.compile(r".*([\\({\[|,]|&&|\b(then|do|in|else|begin))\s*")


def text_edits(name: str, text: str) -> list[Edit]:
    """`name`, and a `#!` line, tell what a comment looks like."""
    shell = bool(_SHELL.search(name) or _SHELL_LINE.match(text))
    swaps = [*_SWAPS, *(_SHELL_SWAPS if shell else _NO_SHELL_SWAPS)]
    found: set[Edit] = set()
    for start, code in _code_lines(name, text):
        for kind, pattern, new in swaps:
            found |= {Edit(start + at.start(), start + at.end(), new, kind) for at in re.finditer(pattern, code)}
        found |= set(_constants(start, code))
        if _is_statement(code):
            found.add(Edit(start, start + len(code), "", "line"))
    return sorted(found)


def _constants(start: int, code: str) -> Iterator[Edit]:
    for at in _NUMBER.finditer(code):
        value = int(at[0])
        yield Edit(start + at.start(), start + at.end(), str(value + 1), "number")
        if value:
            yield Edit(start + at.start(), start + at.end(), str(value - 1), "number")
    for at in _QUOTED.finditer(code):
        yield Edit(start + at.start() + 1, start + at.start() + 1, "~", "text")


def _is_statement(code: str) -> bool:
    """Whether a program may still be one without this line."""
    balanced = all(code.count(left) == code.count(right) for left, right in _BRACKETS)
    apart = _LEFT.match(code) or _STRUCTURE.fullmatch(code) or _GOES_ON.fullmatch(code)
    return balanced and not apart


def _code_lines(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Where each line with code begins, from its first word on and without its comment."""
    slashes, dashes = bool(_SLASHES.search(name)), bool(_DASHES.search(name))
    mark = "//" if slashes else "--" if dashes else "#"
    start, inside = 0, False
    for line in text.splitlines(keepends=True):
        code = line.strip()
        if inside or (slashes and code.startswith("/*")):
            inside = "*/" not in code
        elif code and len(code) <= LONGEST_LINE and not code.startswith(mark):
            indent = len(line) - len(line.lstrip())
            yield start + indent, _without_comment(code, mark)
        start += len(line)


def _without_comment(code: str, mark: str) -> str:
    """A mark counts after a blank, outside of quotes."""
    quotes = [at.span() for at in _QUOTED.finditer(code)]
    for at in re.finditer(rf"\s+{re.escape(mark)}(\s|$)", code):
        if not any(left < at.start() < right for left, right in quotes):
            return code[: at.start()]
    return code
