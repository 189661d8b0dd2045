"""Text of a source file for scb-check, in which its parts (Python, tree-sitter and ast-grep) count the same lines."""

from __future__ import annotations

import re

PYTHON_SUFFIXES = frozenset({"", ".py", ".py3", ".pyw"})
"""A file without a suffix is a script of Python."""

_JAVASCRIPT_SUFFIXES = frozenset({".cjs", ".js", ".mjs", ".ts"})
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n?|\n")
_COOKIE = re.compile(rb"([ \t\f]*#.*?)coding([:=][ \t]*([-\w.]+))")
_BLANK = re.compile(rb"[ \t\f]*(?:#.*)?")
_FIRST_FORM_FEEDS = re.compile(r"(?m)^[ \t\f]*\f")
_SEPARATORS = dict.fromkeys(map(ord, "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), " ")
"""Python's `str.splitlines` ends a line at these, and the parsers of most languages do not."""

_JAVASCRIPT_SEPARATORS = {**_SEPARATORS, 0x2028: "\n", 0x2029: "\n"}
_PROBE = rb"\x0a\u000a+AAo-~{" + bytes(set(range(128)) - set(b"\\"))
"""With escapes of unicode_escape, raw_unicode_escape, UTF-7 and HZ."""

_DIRECTIVE, _NO_DIRECTIVE = b"ast-grep-ignore", b"ast-grep-ignorE"
"""ast-grep obeys this word in a comment, and has no option against it. The other has the same length and syntax."""


def neutral_text(data: bytes, suffix: str) -> bytes | None:
    """The same program in UTF-8, with a line feed after each line.

    None where its encoding could hide code, as an ASCII character may have another meaning in it.
    """
    data = _LINE_END.sub(b"\n", data.removeprefix(_BOM))
    encoding = None
    if suffix in PYTHON_SUFFIXES:
        data, encoding = _without_cookie(data)
    text = _decode(data, encoding)
    if text is None:
        return None
    # Python begins to count the indentation anew after a form feed.
    text = _FIRST_FORM_FEEDS.sub("", text)
    text = text.translate(_JAVASCRIPT_SEPARATORS if suffix in _JAVASCRIPT_SUFFIXES else _SEPARATORS)
    return text.encode("utf-8", "replace").replace(_DIRECTIVE, _NO_DIRECTIVE)


def _without_cookie(data: bytes) -> tuple[bytes, str | None]:
    """The encoding that a comment in the first two lines declares (PEP 263), and the file without the declaration."""
    lines = data.split(b"\n", 2)
    for number, line in enumerate(lines[:2]):
        if cookie := _COOKIE.match(line):
            lines[number] = line[: cookie.end(1)] + b"codinG" + line[cookie.start(2) :]
            return b"\n".join(lines), cookie[3].decode("ascii", "replace")
        if not _BLANK.fullmatch(line):
            break
    return data, None


def _decode(data: bytes, encoding: str | None) -> str | None:
    try:
        if encoding is not None and not _is_superset_of_ascii(encoding):
            return None
        return data.decode(encoding or "utf-8")
    except LookupError:  # Python does not run such a file
        return data.decode("latin-1")
    except UnicodeDecodeError:
        return data.decode("latin-1") if encoding is None else data.decode(encoding, "replace")


def _is_superset_of_ascii(encoding: str) -> bool:
    try:
        return _PROBE.decode(encoding) == _PROBE.decode("ascii")
    except UnicodeError:
        return False
