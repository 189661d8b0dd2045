"""Assets and data files that no test uses, as far as the tests' own words tell."""

from __future__ import annotations

import ast
import fnmatch
import re
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import in_line
from slop_code.authoring.check.findings import Finding, Location, Rule, Severity
from slop_code.authoring.check.layout.problem_files import TESTS, called, nodes, strings
from slop_code.authoring.check.yaml_keys import line_of
from slop_code.authoring.problem_folders import CONFIG
from slop_code.evaluation.quarantine import LEDGER
from slop_code.execution.assets import ASSETS_DIR_VARIABLE, asset_variable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import PurePosixPath

    from slop_code.authoring.check.layout.problem_files import ProblemFiles

UNUSED_ASSET = Rule(
    "asset-unused",
    Severity.WARNING,
    "No test and no specification names an asset",
    "Use it, or take it out of static_assets.",
    in_code=False,
)
UNUSED_DATA = Rule(
    "data-unused",
    Severity.WARNING,
    "No test names a file of the tests folder",
    "Use it in a test, or remove it.",
    in_code=False,
)
RULES = (UNUSED_ASSET, UNUSED_DATA)

PREFIX = asset_variable("")
LISTING = frozenset({"iterdir", "listdir", "scandir", "walk", "copytree"})
GLOBS = frozenset({"glob", "rglob", "iglob"})
ASIDE = ("README*", "LICENSE*", ".git*", "py.typed", "pytest.ini", "*.pyi", "*_test.py", LEDGER)


def unused_assets(reading: ProblemFiles) -> Iterator[Finding]:
    if not reading.complete:
        return
    said = [text for source in reading.sources for text in strings(source.tree)]
    if _all_assets(reading, said):
        return
    words = "\n".join([*said, reading.specs])
    for name, asset in reading.problem.static_assets.items():
        if not any(word in words for word in (asset_variable(name), name, asset.path.rstrip("/").rpartition("/")[2])):
            line = line_of(reading.config, f"static_assets.{name}")
            message = f"nothing names the asset {in_line(name)} or {in_line(asset_variable(name))}"
            yield Finding(UNUSED_ASSET, Location(CONFIG, line), message)


def _all_assets(reading: ProblemFiles, said: list[str]) -> bool:
    """Whether the tests look at whatever assets there are."""
    if any(text.endswith((ASSETS_DIR_VARIABLE, PREFIX)) for text in said):
        return True
    return any(
        isinstance(node, ast.arg) and node.arg == "assets" for source in reading.sources for node in nodes(source.tree)
    )


def unused_data(reading: ProblemFiles) -> Iterator[Finding]:
    if not reading.complete or _lists_folders(reading):
        return
    said = segments(reading)
    patterns = [*globs(reading), *reading.problem.visible]
    assets = [asset.path.removeprefix("./").rstrip("/") for asset in reading.problem.static_assets.values()]
    for file in reading.data:
        path = f"{TESTS}/{file}"
        if any(fnmatch.fnmatchcase(file.name, aside) for aside in ASIDE):
            continue
        if any(path == asset or path.startswith(f"{asset}/") for asset in assets):
            continue
        if not is_named(file, said, patterns):
            yield Finding(UNUSED_DATA, Location(path), f"no test names {in_line(path)}, or a folder that it lies in")


def is_named(file: PurePosixPath, said: Collection[str], patterns: Collection[str]) -> bool:
    """`said`: the parts of paths in strings; `patterns`: globs of a file's name or of its path below tests/."""
    names = (file.name, file.stem, file.name.partition(".")[0], *file.parts[:-1])
    if any(name in said for name in names):
        return True
    for pattern in patterns:
        last = pattern.rpartition("/")[2]
        if fnmatch.fnmatchcase(str(file), pattern) or (last.strip("*") and fnmatch.fnmatchcase(file.name, last)):
            return True
    return False


def segments(reading: ProblemFiles) -> set[str]:
    """Split at anything that can stand between two names, so that `f"{case}/in.txt"` names `in.txt`."""
    found: set[str] = set()
    for source in reading.sources:
        for text in strings(source.tree):
            found |= {text, *re.split(r"[/\\\s,;:'\"]+", text)}
    return found


def globs(reading: ProblemFiles) -> Iterator[str]:
    """Strings with a star anywhere, a star alone where folders are listed, and names that are put together."""
    for source in reading.sources:
        for node in nodes(source.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "*" in node.value.strip("*/"):
                yield node.value
            elif isinstance(node, ast.Call) and called(node) in GLOBS:
                yield from (text for argument in node.args for text in strings(argument))
            elif isinstance(node, ast.JoinedStr):
                yield from _joined(node)


def _joined(node: ast.JoinedStr) -> Iterator[str]:
    """`f"case_{number}.txt"` as `case_*.txt`; one that says nothing is left out."""
    parts = [part.value if isinstance(part, ast.Constant) else "*" for part in node.values]
    pattern = "".join(str(part) for part in parts)
    if pattern.strip("*/ "):
        yield pattern


def _lists_folders(reading: ProblemFiles) -> bool:
    """Whether a test takes what it finds in a folder; which folder that is cannot be told."""
    for source in reading.sources:
        for node in nodes(source.tree):
            if isinstance(node, ast.Call):
                if called(node) in LISTING:
                    return True
                if called(node) in GLOBS and not any(isinstance(one, ast.Constant) for one in node.args):
                    return True
    return False
