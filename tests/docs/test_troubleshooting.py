"""Troubleshooting guide: every message that it quotes exists in the sources, or comes from the system."""

from __future__ import annotations

import ast
import errno
import os
import re
from pathlib import Path

import pytest

from slop_code.authoring.check.steps import STEPS, step

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "troubleshooting.md"


def texts() -> list[str]:
    """Every string of the package, in Python and C; an f-string is split at its values."""
    sources = (ROOT / "src" / "slop_code").rglob("*.py")
    nodes = (node for path in sources for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    strings = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    sources_in_c = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "slop_code").rglob("*.c")]
    return [*strings, *sources_in_c, os.strerror(errno.ELOOP), os.strerror(errno.EROFS)]


def quoted() -> list[str]:
    """The texts in backquotes in the first column."""
    cells = re.findall(r"^\| (.*?) \|", PAGE.read_text(encoding="utf-8"), flags=re.M)
    return [text for cell in cells for text in re.findall(r"`([^`]+)`", cell)]


MESSAGES = [text for text in quoted() if " " in text and not text.startswith("slop-code ")]
RULES = [text for text in quoted() if re.fullmatch(r"[a-z]+(-[a-z]+)+", text)]


def fragments(message: str) -> list[str]:
    return [part.strip(" .,:;()") for part in message.split("…") if len(part.strip(" .,:;()")) > 2]


@pytest.mark.parametrize(
    ("message", "expected"),
    [("a set-up: … exited with …", ["a set-up", "exited with"]), ("…: no", []), ("all of it", ["all of it"])],
)
def test_a_message_is_split_at_its_ellipses(message, expected):
    assert fragments(message) == expected


@pytest.mark.e2e
def test_every_quoted_message_is_in_the_sources():
    known = texts()
    missing = [part for message in MESSAGES for part in fragments(message) if not any(part in text for text in known)]
    assert missing == []
    assert len(MESSAGES) > 25


def test_every_quoted_rule_exists():
    assert set(RULES) <= {rule.id for name in STEPS for rule in step(name).rules}
    assert len(RULES) > 5
