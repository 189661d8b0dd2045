"""pytest's report of a failure without object addresses and without the reprs of fixtures."""

from __future__ import annotations

import itertools
import re

from slop_code.evaluation.failures.message_reason import without_addresses

_SEPARATOR = re.compile(r"^_(?: _)+ ?\n", re.MULTILINE)
"""Line between two entries of a traceback."""

_ARGUMENT = re.compile(r"[^\W\d]\w{0,99} = ")
_SIMPLE_ARGUMENT = re.compile(
    r"""(?:^|(?<=,\ ))
    [^\W\d]\w{0,99}\ =\ (?:-?[0-9][0-9_.e+-]{0,40}|True|False|None|'(?:[^'\\]|\\.){0,200}'|"(?:[^"\\]|\\.){0,200}")
    (?=,\ [^\W\d]|$)""",
    re.VERBOSE | re.MULTILINE,
)
"""An argument whose value is a number, a short string, a truth value or None, as those of most parametrised tests."""


def pytest_text(message: str) -> str:
    """The message for people. Takes time in proportion to its length, whatever it holds.

    pytest prints the arguments of a function before its source. Only arguments with simple values are kept.
    """
    text = without_addresses(message)
    heads = [0, *(separator.end() for separator in _SEPARATOR.finditer(text)), len(text)]
    return "".join(_without_arguments(text[start:end]) for start, end in itertools.pairwise(heads))


def _without_arguments(entry: str) -> str:
    """An entry of a traceback. An empty line is between the arguments and the source."""
    arguments, _, rest = entry.partition("\n\n")
    if not _ARGUMENT.match(entry) or not rest.startswith(("    ", ">")):
        return entry
    simple = ", ".join(_SIMPLE_ARGUMENT.findall(arguments))
    return f"{simple}\n\n{rest}" if simple else rest
