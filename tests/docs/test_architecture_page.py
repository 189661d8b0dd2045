"""Architecture page: every file that it names exists and defines the names beside it."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.docs.pages import DOCS, ROOT

PAGE = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "src" / "slop_code"
ROWS = re.findall(r"^\| (.+?) \| `([^`|]+\.(?:py|c))` \| (.+?) \|$", PAGE, flags=re.M)


@pytest.mark.parametrize("page", ["docs/explanation/architecture.md", "CONTRIBUTING.md"])
def test_the_layers_are_those_that_are_enforced(page: str) -> None:
    not_shown = {"slop_code.__main__", "slop_code._version", "slop_code.pytest_plugin"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [contract] = [rule for rule in project["tool"]["importlinter"]["contracts"] if rule["type"] == "layers"]
    layers = [[name for name in layer.split(" | ") if name not in not_shown] for layer in contract["layers"]]
    shown = " → ".join(", ".join(name.removeprefix("slop_code.") for name in layer) for layer in layers if layer)
    assert shown in " ".join((ROOT / page).read_text(encoding="utf-8").split())


def defines(source: str, name: str) -> bool:
    python = rf"^ *(?:async )?(?:def|class) {name}\b|^{name}\b.*= "
    c = rf"^[\w ]*[ *]{name}\([^;]*\{{"
    return re.search(f"{python}|{c}", source, flags=re.M) is not None


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def grade(own):\n", True),
        ("    async def grade(own):\n", True),
        ("class grade:\n", True),
        ("static enum reason grade(void) {\n", True),
        ("    grade(own)\n", False),
        ("int grade(void);\n", False),
        ("def grades(own):\n", False),
    ],
)
def test_a_definition_is_recognised(source: str, expected: bool) -> None:
    assert defines(source, "grade") is expected


@pytest.mark.parametrize(("what", "file", "names"), ROWS, ids=[what for what, _, _ in ROWS])
def test_every_name_is_defined_in_its_file(what: str, file: str, names: str) -> None:
    source = (PACKAGE / file).read_text(encoding="utf-8")
    missing = [name for name in re.findall(r"`([^`]+)`", names) if not defines(source, name)]
    assert missing == [], f"docs/explanation/architecture.md, {what}: {file} does not define them"


def test_every_file_of_the_page_exists() -> None:
    files = re.findall(r"`([\w/]+\.(?:py|c))`", PAGE)
    assert [file for file in files if not (PACKAGE / file).exists()] == []
    assert len(ROWS) > 30


def test_every_row_of_a_table_is_checked() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "| file |" not in line]
    assert len(rows) == len(ROWS)
