"""Tutorial: it has as many commands as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(bash|console)\n(.*?)^```$", re.M | re.S)
DOCUMENT = re.compile(r"<<'(\w+)'\n.*?^\1$", re.M | re.S)
NUMBERS = {"Eight": 8}


def commands(text: str) -> list[str]:
    """The commands as a reader types them; commands joined by a pipe count as one."""
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
def test_commands_are_counted_as_typed(text, expected):
    assert len(commands(text)) == expected


def test_a_verdict_takes_at_most_ten_commands():
    first, second = PAGE.read_text(encoding="utf-8").split("\n## Part two: ")
    count = re.search(r"^(\w+) commands take you", second, flags=re.M)
    install = commands(first)[:2]
    assert install == ["make demo", ". .venv/bin/activate"]
    assert len(commands(second)) == NUMBERS[count[1]]
    assert len(install) + len(commands(second)) <= 10
