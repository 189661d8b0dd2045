"""Pages of the documentation, with their blocks, sections and tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
OTHER_PAGES = [ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples/README.md")]
BLOCK = re.compile(r"^(?:<!-- snippet: (?P<use>[^\n]*?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    use: str

    @property
    def file(self) -> str | None:
        return self.use.removeprefix("file ") if self.use.startswith("file ") else None

    @property
    def is_run(self) -> bool:
        return not self.use.startswith(("not run, ", "run by "))

    @property
    def runner(self) -> Path | None:
        """The test file that runs the block in the place of `test_snippets.py`."""
        return ROOT / self.use.removeprefix("run by ") if self.use.startswith("run by ") else None

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, match.start()) + 1, match["language"], match["text"], match["use"] or "")
        for match in BLOCK.finditer(text)
    ]


def section(page: str, heading: str) -> str:
    """The text below one heading of a reference page, without the sections below it."""
    text = (DOCS / "reference" / page).read_text(encoding="utf-8")
    parts = re.split(r"^#+ (.*)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[heading]


def table_rows(text: str) -> dict[str, list[str]]:
    """The cells of each table row, by each name in backquotes in the first cell."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return {name: row for row in cells for name in re.findall(r"`([^`]+)`", row[0])}
