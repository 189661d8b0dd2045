"""Inputs of a checkpoint's tests, kept with their results so that a later change of them can be explained."""

from __future__ import annotations

import ast
import hashlib
import json
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from slop_code._io import digest_of, write_atomic
from slop_code.errors import ResultError
from slop_code.evaluation.result_files.stored_record import Stored, load_stored
from slop_code.execution.sandbox import REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path, PurePosixPath

    from slop_code.evaluation.report import Digests

INPUTS = "inputs.json"
"""Name of the file in `.scbench`. No verdict depends on it."""

OUTSIDE = ""
"""Key of the lines of a file that belong to no test."""

CodeDigests = dict[str, dict[str, str]]
"""Digests of the source of each test, by file and by name (`test_a`, `TestB::test_c`), and of the lines outside."""


class TestInputs(Stored):
    """The digests of a result are made of these values, so a record that does not belong to it is recognised."""

    __test__ = False

    schema_version: Literal[1] = 1
    files: dict[str, str]
    """Digests of the files of tests/ and of the assets."""
    ini: str
    visible: list[str]
    config: list[Any]
    """The settings of config.yaml that can change a verdict."""
    code: CodeDigests = Field(default_factory=dict)

    @property
    def tests_digest(self) -> str:
        return digest_of([self.files, self.ini, self.visible])

    @property
    def config_digest(self) -> str:
        return digest_of(self.config)

    def belong_to(self, digests: Digests) -> bool:
        return (self.tests_digest, self.config_digest) == (digests.tests, digests.config)

    def save(self, output: Path) -> None:
        text = json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True)
        write_atomic(output / REPORTS_DIR / INPUTS, text + "\n")

    @classmethod
    def load(cls, output: Path) -> TestInputs | None:
        """None where there is no file, or none that can be read."""
        try:
            return load_stored(cls, output / REPORTS_DIR / INPUTS, "")
        except ResultError:
            return None


def code_digests(folder: Path, files: Iterable[PurePosixPath]) -> CodeDigests:
    """Of the Python files among `files`; a file that cannot be parsed is left out."""
    parsed = {file: _digests_of(folder / file) for file in files if file.suffix == ".py"}
    return {f"tests/{file}": digests for file, digests in parsed.items() if digests is not None}


def _digests_of(path: Path) -> dict[str, str] | None:
    try:
        source = path.read_text("utf-8")
        tree = ast.parse(source)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    lines = source.split("\n")
    tests, inside = dict[str, list[str]](), set[int]()
    for name, node in _tests_in(tree, ""):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
        last = node.end_lineno or node.lineno
        tests.setdefault(name, []).extend(lines[first:last])
        inside.update(range(first, last))
    outside = [line for number, line in enumerate(lines) if number not in inside and line.strip()]
    return {name: _digest(text) for name, text in [(OUTSIDE, outside), *tests.items()]}


def _tests_in(tree: ast.Module | ast.ClassDef, owner: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _tests_in(node, f"{owner}{node.name}::")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield f"{owner}{node.name}", node  # type: ignore[misc]


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
