"""HTML document of a page with its style, scripts and data. No text in it can break out of its element."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MARKER = "<!-- written by slop-code -->"
"""In the head of every page: a file with it may be overwritten."""

MAX_PARTS_LENGTH = 5_850_000
"""Characters of all packed parts with texts together; beyond it, texts are left out."""

SHARED = ("shared.js", "parts.js", "frame.js")
STYLE = "page.css"
_ENDS_SCRIPT = re.compile(r"</script|<!--|</style", re.IGNORECASE)
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*$", re.MULTILINE)
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def pack(value: Any) -> str:
    """A JSON value as gzip in base64, which has no character with a meaning in HTML."""
    return pack_json(json_of(value))


def json_of(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def pack_json(raw: bytes) -> str:
    return base64.b64encode(gzip.compress(raw, compresslevel=6, mtime=0)).decode("ascii")


@dataclass(slots=True)
class PageParts:
    """Parts that a page unpacks when they are needed, within a limit."""

    limit: int = MAX_PARTS_LENGTH
    packed: dict[str, str] = field(default_factory=dict)
    size: int = 0
    is_full: bool = False
    """Whether the first version of a part did not fit."""

    ratios: dict[int, float] = field(default_factory=dict)
    """By the number of a version, the smallest ratio of packed to raw length so far."""

    def add(self, name: str, versions: Iterable[Any]) -> None:
        """The first version that fits, each smaller than the one before; else the last.

        A version that would only fit if it packed better than all before it is not tried.
        """
        packed = ""
        for number, version in enumerate(versions):
            raw, ratio = json_of(version), self.ratios.get(number, 0.0)
            packed = pack_json(raw) if self.size + len(raw) * ratio <= self.limit else ""
            if packed:
                self.ratios[number] = min(ratio or 2.0, len(packed) / len(raw))
                if self.size + len(packed) <= self.limit:
                    break
            self.is_full = True
        self.packed[name] = packed or pack_json(raw)
        self.size += len(self.packed[name])


def render_page(
    title: str, *, scripts: Sequence[str], data: Any, parts: Mapping[str, str] | None = None, styles: Sequence[str] = ()
) -> str:
    """`scripts` and `styles` are names of assets after the shared ones. `data` is a JSON value, unpacked at once.

    `parts` has packed JSON values by name, which are unpacked when they are needed.
    """
    named = parts or {}
    style = "".join(asset(name) for name in (STYLE, *styles))
    sources = [asset(name) for name in (*SHARED, *scripts)]
    return "\n".join(
        [
            "<!doctype html>",
            MARKER,
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(sources, style)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{_text(title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            f'<header id="top"><h1>{_text(title)}</h1></header>',
            '<main id="main" tabindex="-1"><p id="loading" role="status">Unpacking the results …</p></main>',
            "<noscript><p>This page needs JavaScript, which is off. "
            "<code>slop-code show</code> prints the same in a terminal.</p></noscript>",
            _block("data", pack({"data": data, "parts": list(named)})),
            *[f"<script>{source}</script>" for source in sources],
            *[_block(f"part-{number}", part) for number, part in enumerate(named.values())],
            "</body>",
            "</html>",
            "",
        ]
    )


@cache
def asset(name: str) -> str:
    """A style sheet or script as it is inlined, with the licence of a library."""
    folder = files(__package__).joinpath("assets")
    text = _SOURCE_MAP.sub("", folder.joinpath(name).read_text(encoding="utf-8"))
    licence = folder.joinpath(f"{name}.LICENSE")
    if licence.is_file():
        text = f"/*!\n{licence.read_text(encoding='utf-8').strip()}\n*/\n{text}"
    if end := _ENDS_SCRIPT.search(text):
        raise ValueError(f"{name}: {end[0]!r} would end the element around it")
    return f"\n{text.strip()}\n"


def _policy(sources: Sequence[str], style: str) -> str:
    """Nothing is loaded, and only scripts and styles with these digests are used."""
    allowed = " ".join(map(_digest, sources))
    return f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def _block(name: str, packed: str) -> str:
    return f'<script type="text/plain" id="{name}">{packed}</script>'


def _text(text: str) -> str:
    return html.escape(_NOT_TEXT.sub("\ufffd", text), quote=True)
