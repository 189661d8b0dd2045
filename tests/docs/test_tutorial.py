"""The tutorial is as short as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(bash|console)\n(.*?)^```$", re.M | re.S)
DOCUMENT = re.compile(r"<<'(\w+)'\n.*?^\1$", re.M | re.S)
NUMBERS = {"Eight": 8}


def commands(text: str) -> list[str]:
    """As a reader types them: what stands on one line is one only where nothing but a pipe joins it."""
    typed: list[str] = []
    for language, block in BLOCK.findall(text):
        lines = DOCUMENT.sub("", block).splitlines()
        if language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        typed += [part for line in lines for part in re.split(r"&&|;", line) if part.strip()]
    return typed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```bash\na\nb && c; d\n```", 4),
        ("```bash\ncat > x <<'END'\n1\n2\nEND\n```\n```console\n$ a | b\nprinted\n```", 2),
        ("```python\na\n```", 0),
    ],
)
def test_counting(text, expected):
    assert len(commands(text)) == expected


def test_from_nothing_to_a_verdict_within_ten_commands():
    first, second = PAGE.read_text(encoding="utf-8").split("\n## Part two: ")
    said = re.search(r"^(\w+) commands take you", second, flags=re.M)
    install = commands(first)[:2]
    assert install == ["make demo", ". .venv/bin/activate"]
    assert len(commands(second)) == NUMBERS[said[1]]
    assert len(install) + len(commands(second)) <= 10
