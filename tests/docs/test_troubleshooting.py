"""What the troubleshooting guide says that people see is what slop-code, or the system, says."""

from __future__ import annotations

import ast
import errno
import os
import re
from pathlib import Path

import pytest

from slop_code.authoring.check.steps import all_rules

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "troubleshooting.md"


def texts() -> list[str]:
    """Every text in the package: of one with values in it, each part between them."""
    sources = (ROOT / "src" / "slop_code").rglob("*.py")
    nodes = (node for path in sources for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    found = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [*found, os.strerror(errno.ELOOP), os.strerror(errno.EROFS)]


def quoted() -> list[str]:
    """What stands in backquotes in the first column."""
    cells = re.findall(r"^\| (.*?) \|", PAGE.read_text(encoding="utf-8"), flags=re.M)
    return [found for cell in cells for found in re.findall(r"`([^`]+)`", cell)]


MESSAGES = [found for found in quoted() if " " in found and not found.startswith("slop-code ")]
RULES = [found for found in quoted() if re.fullmatch(r"[a-z]+(-[a-z]+)+", found)]


def fragments(message: str) -> list[str]:
    return [part.strip(" .,:;()") for part in message.split("…") if len(part.strip(" .,:;()")) > 2]


@pytest.mark.parametrize(
    ("message", "expected"),
    [("a set-up: … exited with …", ["a set-up", "exited with"]), ("…: no", []), ("all of it", ["all of it"])],
)
def test_fragments(message, expected):
    assert fragments(message) == expected


@pytest.mark.e2e
def test_messages_are_those_of_the_sources():
    known = texts()
    missing = [part for message in MESSAGES for part in fragments(message) if not any(part in text for text in known)]
    assert missing == []
    assert len(MESSAGES) > 25


def test_rules_are_those_of_the_check():
    assert set(RULES) - set(all_rules()) == set()
    assert len(RULES) > 5
