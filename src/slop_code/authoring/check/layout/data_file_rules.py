"""Rules about assets and data files that no test names, and about patterns that match no file."""

from __future__ import annotations

import ast
import fnmatch
import re
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import single_line
from slop_code.authoring.check.findings import Finding, Location, Rule
from slop_code.authoring.check.layout.problem_files import TESTS, called, strings
from slop_code.authoring.check.yaml_keys import line_of_key
from slop_code.evaluation.problem.dependency_lock import NAME as LOCK_NAME
from slop_code.evaluation.problem.problem_lookup import CONFIG
from slop_code.evaluation.problem.quarantine import QUARANTINE_FILE
from slop_code.execution.assets import ASSETS_DIR_VARIABLE, asset_variable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import PurePosixPath

    from slop_code.authoring.check.layout.problem_files import ProblemFiles

UNUSED_ASSET = Rule.warning(
    "asset-unused",
    "No test and no specification names an asset",
    "Use it, or remove it from static_assets.",
    in_code=False,
)
UNUSED_DATA = Rule.warning(
    "data-unused", "No test names a file of the tests folder", "Use it in a test, or remove it.", in_code=False
)
UNMATCHED = Rule.warning(
    "visible-unmatched",
    "A pattern of `visible` matches nothing in the tests folder",
    "Correct the pattern, which is relative to tests/, or remove it.",
    in_code=False,
)
PREFIX = asset_variable("")
LISTING = frozenset({"iterdir", "listdir", "scandir", "walk", "copytree"})
GLOBS = frozenset({"glob", "rglob", "iglob"})
ASIDE = ("README*", "LICENSE*", ".git*", "py.typed", "pytest.ini", "*.pyi", "*_test.py", QUARANTINE_FILE, LOCK_NAME)


def unused_assets(files: ProblemFiles) -> Iterator[Finding]:
    if not files.complete:
        return
    texts = list(files.strings())
    if _all_assets(files, texts):
        return
    words = "\n".join([*texts, files.specs])
    for name, asset in files.problem.static_assets.items():
        if not any(word in words for word in (asset_variable(name), name, asset.path.rstrip("/").rpartition("/")[2])):
            line = line_of_key(files.config, "static_assets", name)
            message = f"nothing names the asset {single_line(name)} or {single_line(asset_variable(name))}"
            yield Finding(UNUSED_ASSET, Location(CONFIG, line), message)


def _all_assets(files: ProblemFiles, texts: list[str]) -> bool:
    """True where the tests list all assets."""
    if any(text.endswith((ASSETS_DIR_VARIABLE, PREFIX)) for text in texts):
        return True
    return any(isinstance(node, ast.arg) and node.arg == "assets" for node in files.nodes())


def unused_data(files: ProblemFiles) -> Iterator[Finding]:
    if not files.complete or _lists_folders(files):
        return
    names = segments(files)
    patterns = [*globs(files), *files.problem.visible]
    assets = [asset.path.removeprefix("./").rstrip("/") for asset in files.problem.static_assets.values()]
    for file in files.data:
        path = f"{TESTS}/{file}"
        if any(fnmatch.fnmatchcase(file.name, aside) for aside in ASIDE):
            continue
        if any(path == asset or path.startswith(f"{asset}/") for asset in assets):
            continue
        if not is_named(file, names, patterns):
            message = f"no test names {single_line(path)}, or a folder that contains it"
            yield Finding(UNUSED_DATA, Location(path), message)


def unmatched_visible(files: ProblemFiles) -> Iterator[Finding]:
    if files.failure:
        return
    for index, pattern in enumerate(files.problem.visible):
        if not any((files.folder / TESTS).glob(pattern)):
            line = line_of_key(files.config, "visible", index)
            message = f"visible: {single_line(pattern)} matches nothing in {TESTS}/"
            yield Finding(UNMATCHED, Location(CONFIG, line), message)


def is_named(file: PurePosixPath, names: Collection[str], patterns: Collection[str]) -> bool:
    """`names` are parts of paths in strings, `patterns` globs of a file name or of a path below tests/."""
    own = (file.name, file.stem, file.name.partition(".")[0], *file.parts[:-1])
    if any(name in names for name in own):
        return True
    for pattern in patterns:
        last = pattern.rpartition("/")[2]
        if fnmatch.fnmatchcase(str(file), pattern) or (last.strip("*") and fnmatch.fnmatchcase(file.name, last)):
            return True
    return False


def segments(files: ProblemFiles) -> set[str]:
    """All strings, also split at separators, so that `f"{case}/in.txt"` names `in.txt`."""
    names: set[str] = set()
    for text in files.strings():
        names |= {text, *re.split(r"[/\\\s,;:'\"]+", text)}
    return names


def globs(files: ProblemFiles) -> Iterator[str]:
    """Strings with a star, arguments of glob functions, and f-strings with a star for each value."""
    for node in files.nodes():
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "*" in node.value.strip("*/"):
            yield node.value
        elif isinstance(node, ast.Call) and called(node) in GLOBS:
            yield from (text for argument in node.args for text in strings(argument))
        elif isinstance(node, ast.JoinedStr):
            yield from _joined(node)


def _joined(node: ast.JoinedStr) -> Iterator[str]:
    """`f"case_{number}.txt"` becomes `case_*.txt`; a pattern that matches everything is left out."""
    parts = [part.value if isinstance(part, ast.Constant) else "*" for part in node.values]
    pattern = "".join(str(part) for part in parts)
    if pattern.strip("*/ "):
        yield pattern


def _lists_folders(files: ProblemFiles) -> bool:
    """True where a test lists a folder, since it is unknown which folder."""
    calls = [node for node in files.nodes() if isinstance(node, ast.Call)]
    return any(
        called(call) in LISTING
        or (called(call) in GLOBS and not any(isinstance(argument, ast.Constant) for argument in call.args))
        for call in calls
    )
