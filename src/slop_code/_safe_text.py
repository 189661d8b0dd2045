"""Texts that are bounded and safe to print."""

from __future__ import annotations

import os
import re

NAME_LIMIT = 300
"""Bytes of a name in a message."""

# Control characters except newline and tab, lone surrogates, characters of zero width or that change text direction.
_ESCAPED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff]"
)


def escape_control(text: str, limit: int) -> str:
    """Escapes control characters, so that text is safe to print; cuts the middle of text longer than `limit` bytes."""
    shown = _ESCAPED.sub(lambda match: _escape(match.group()), shortened(text, limit))
    raw = shown.encode("utf-8")
    if len(raw) <= limit:
        return shown
    note = f"\n[... {len(raw) - limit} bytes left out ...]\n"
    keep = (limit - len(note)) // 2
    return raw[:keep].decode("utf-8", "ignore") + note + raw[-keep:].decode("utf-8", "ignore")


def decoded_name(name: str) -> str:
    """The name or path of a file as text that JSON can hold: bytes that are not UTF-8 are escaped."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    note = f"\n[... {len(text) - limit} characters left out ...]\n"
    keep = max(0, limit - len(note)) // 2
    return text[:keep] + note + text[len(text) - keep :]


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
