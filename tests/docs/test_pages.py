"""Form of every page: known blocks, links with a target, lines of at most 120 characters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import BLOCK, OTHER_PAGES, PAGES, ROOT, blocks, name_of

if TYPE_CHECKING:
    from pathlib import Path

ALL_PAGES = [*PAGES, *OTHER_PAGES]
LANGUAGES = {"bash", "console", "python", "yaml", "text"}
MAX_NOT_RUN = 6
MAX_LINE_LENGTH = 120
MAX_README_LINES = 120


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_every_block_has_a_known_language_and_use(page: Path) -> None:
    fences = re.findall(r"^ *```", page.read_text(encoding="utf-8"), flags=re.M)
    assert len(fences) == 2 * len(blocks(page))
    for block in blocks(page):
        assert block.language in LANGUAGES, str(block)
        assert not block.use or block.file or not block.is_run, f"{block}: {block.use}"


def test_few_blocks_are_not_run() -> None:
    left_out = [block for page in PAGES for block in blocks(page) if not block.is_run]
    assert len([block for block in left_out if block.runner is None]) <= MAX_NOT_RUN


def test_a_block_that_another_test_runs_is_on_a_page_that_it_reads() -> None:
    runners = {(page, block.runner) for page in PAGES for block in blocks(page) if block.runner is not None}
    assert runners
    for page, runner in runners:
        assert page.name in runner.read_text(encoding="utf-8"), f"{name_of(page)}: {runner}"


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_every_link_has_a_target(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def prose(text: str) -> list[str]:
    """All lines outside of code blocks and tables."""
    return [line for line in BLOCK.sub("", text).splitlines() if not line.startswith("|")]


def test_prose_has_neither_code_nor_tables() -> None:
    assert prose("a\n```text\nb\n```\n| c |\nd") == ["a", "", "d"]


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_no_line_of_prose_is_too_long(page: Path) -> None:
    lines = prose(page.read_text(encoding="utf-8"))
    assert [line for line in lines if len(line) > MAX_LINE_LENGTH] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= MAX_README_LINES
