"""Strategies for odd input, and the property that holds everywhere: an error of ours, or an answer."""

from __future__ import annotations

import copy
import faulthandler
import functools
import json
import re
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from slop_code.errors import SlopCodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Path = tuple[Any, ...]

T = TypeVar("T")

HANGS_S = 60
"""One example takes milliseconds; a process in which one takes this long is ended, and names the test."""

MAX_MESSAGE_LENGTH = 1 << 16

TERMINAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What no output of ours holds: control characters, text turned around, half a character."""

PIECES = [
    "", " ", "\t", "\n", "\r\n", "\0", "\x1b[2J", "\x1b]0;t\x07", "\x9b31m", "\u202e", "\u2028", "\ufeff", "\ud800",
    "\udfff", "é", "e\u0301", "漢", "😀", "-rf", "--", "..", "/", "//", "\\", "::", "[", "]", "{entry_file}", "{", "}",
    "%s", "%", "'", '"', "`", "$(id)", "<script>", "</script>", "]]>", "<!--", "&amp;", "=cmd|", "@SUM", "|", "#", ",",
    ";", "~", "*", "**", "?", "test_checkpoint_1.py", ".py", "CON", "null", "NaN", "1e999", "0x10", "a" * 255,
]  # fmt: skip

odd_text = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=4).map("".join),
    st.text(max_size=20),
    st.text(st.characters(), max_size=8),
)
numbers = st.one_of(
    st.sampled_from([0, -1, 1, 2, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**400, 10**4000]),
    st.sampled_from([0.0, -0.0, 0.5, 1e15, 1.7e308, -1.7e308, 5e-324, float("nan"), float("inf"), float("-inf")]),
    st.integers(),
    st.floats(),
)
odd_values = st.recursive(
    st.none() | st.booleans() | numbers | odd_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_text, inner, max_size=3),
    max_leaves=6,
)


def fuzzed(share: int = 1, **named: st.SearchStrategy[Any]) -> Callable[[Any], Any]:
    """`given`, with an end for every example. `share`: one such part of the profile's examples, where each is slow."""

    def around(test: Any) -> Any:
        @settings(max_examples=max(1, settings().max_examples // share))
        @given(**named)
        @functools.wraps(test)
        def watched(*args: Any, **kwargs: Any) -> None:
            faulthandler.dump_traceback_later(HANGS_S, exit=True)
            try:
                test(*args, **kwargs)
            finally:
                faulthandler.cancel_dump_traceback_later()

        return watched

    return around


def answered(call: Callable[[], T]) -> T | None:
    """None where it was an error of ours, in words."""
    try:
        return call()
    except SlopCodeError as error:
        message = str(error)
        assert message.strip()
        assert len(message) <= MAX_MESSAGE_LENGTH
        return None


def deep(depth: int) -> Any:
    value: Any = 0
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


def paths(value: Any, here: Path = ()) -> Iterator[Path]:
    """Of everything in a document, the document itself included."""
    yield here
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from paths(one, (*here, key))


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


@st.composite
def edited(draw: st.DrawFn, document: Any, most: int = 3) -> Any:
    """The document after some edits that a person or a program might make."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, most))):
        places: dict[str, list[Path]] = {}
        for path in paths(document):
            if path:  # by what it is called: a field that stands there once is as likely as one of every test
                places.setdefault(str(path[-1]) if isinstance(path[-1], str) else "", []).append(path)
        if not places:
            break
        *above, last = draw(st.sampled_from(places[draw(st.sampled_from(sorted(places)))]))
        _edit(draw, at(document, tuple(above)), last, document)
    return document


def _edit(draw: st.DrawFn, parent: Any, key: Any, document: Any) -> None:
    kind = draw(st.sampled_from(["drop", "odd", "odd", "wrap", "deep", "move", "double", "rename"]))
    if kind == "drop":
        del parent[key]
    elif kind == "odd":
        is_number = isinstance(parent[key], int | float) and draw(st.booleans())
        parent[key] = draw(numbers if is_number else odd_values)
    elif kind == "wrap":
        parent[key] = draw(st.sampled_from([[parent[key]], {"a": parent[key]}, str(parent[key])[:1000], None]))
    elif kind == "deep":
        parent[key] = deep(draw(st.sampled_from([10, 45, 150, 250])))
    elif kind == "move":
        parent[key] = copy.deepcopy(at(document, draw(st.sampled_from(list(paths(document))))))
    elif isinstance(parent, list):
        parent.insert(draw(st.integers(0, len(parent))), copy.deepcopy(parent[key]))
    else:
        parent[draw(odd_text)] = copy.deepcopy(parent[key]) if kind == "double" else parent.pop(key)


def as_json(document: Any) -> bytes:
    """With what JSON does not have: NaN, half characters as escapes."""
    return json.dumps(document).encode()


@st.composite
def damaged(draw: st.DrawFn, raw: bytes) -> bytes:
    """Bytes after what disks, editors and interrupted writers do to them."""
    for _ in range(draw(st.integers(1, 3))):
        first, second = sorted(draw(st.tuples(*[st.integers(0, len(raw))] * 2)))
        kind = draw(st.sampled_from(["cut", "flip", "insert", "remove", "repeat", "number", "nest"]))
        if kind == "cut":
            raw = raw[:first]
        elif kind == "flip" and first < len(raw):
            raw = raw[:first] + bytes([raw[first] ^ (1 << draw(st.integers(0, 7)))]) + raw[first + 1 :]
        elif kind == "insert":
            raw = raw[:first] + draw(st.binary(max_size=8) | odd_text.map(_bytes)) + raw[first:]
        elif kind == "remove":
            raw = raw[:first] + raw[second:]
        elif kind == "repeat":
            raw = raw[:second] + raw[first:second] + raw[second:]
        elif kind == "number":
            wanted = draw(st.sampled_from([b"1e999", b"NaN", b"-Infinity", b"9" * 5000, b"-0", b"1" * 400 + b".5"]))
            raw = re.sub(rb"\d+(\.\d+)?", wanted, raw, count=draw(st.integers(1, 3)))
        elif kind == "nest":
            raw = raw[:first] + draw(st.sampled_from([b"[", b'{"a":', b"(", b"- "])) * 3000 + raw[first:]
    return raw


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
