"""Rules about tests that import the submission instead of starting it."""

from __future__ import annotations

import ast
import os
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import single_line
from slop_code.authoring.check.findings import Finding, Location, Rule
from slop_code.authoring.check.layout.problem_files import (
    aliases,
    full_name,
    module_name,
    nodes,
    strings,
    top_level_modules,
)
from slop_code.authoring.check.layout.python_packages import distribution, given_modules, modules_of
from slop_code.authoring.problem_folders import SOLUTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slop_code.authoring.check.layout.problem_files import ProblemFiles
    from slop_code.authoring.check.python_sources import PythonSource

IMPORTED = Rule.error(
    "imports-submission",
    "A test imports the submission",
    "Start it by its entrypoint. If the specification asks for a module, set in_process: true in config.yaml: "
    "the submission can then forge its verdict.",
)
RULES = (IMPORTED,)

LOADERS = {
    "__import__": 0,
    "importlib.import_module": 0,
    "importlib.util.spec_from_file_location": 1,
    "runpy.run_module": 0,
    "runpy.run_path": 0,
}
"""Functions that load code by name, with the index of the argument that holds the name."""


def imports_submission(files: ProblemFiles) -> Iterator[Finding]:
    if files.problem.in_process:
        return
    tested = {module_name(file) for file in files.files if file.suffix == ".py"}
    tested |= {part for file in files.files for part in file.parts[:-1]}
    packages = map(distribution, files.problem.test_dependencies)
    asked = {module for package in packages if package for module in modules_of(package)}
    modules = solution_modules(files.folder) - tested - given_modules() - asked
    for source in files.sources:
        for line, what in loads(source.tree, modules, _outer(source)):
            yield Finding(IMPORTED, Location(source.file, line), what)


def _outer(source: PythonSource) -> int:
    """The number of parent folders up to the folder above the tests folder."""
    return len(PurePosixPath(source.file).parts)


def loads(tree: ast.Module, modules: set[str], up: int = 2) -> Iterator[tuple[int, str]]:
    known = {**aliases(tree), "__import__": "__import__"}
    for node in nodes(tree):
        if isinstance(node, ast.Call):
            yield from _call(node, full_name(node.func, known), modules, up)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [name for name in top_level_modules(node) if name in modules]
            yield from ((node.lineno, f"{single_line(name)} is a module of the submission") for name in names)


def _call(call: ast.Call, name: str, modules: set[str], up: int) -> Iterator[tuple[int, str]]:
    if name in LOADERS and len(call.args) > LOADERS[name]:
        for text in strings(call.args[LOADERS[name]]):
            loaded = PurePosixPath(text).name.removesuffix(".py").partition(".")[0]
            if loaded in modules:
                yield call.lineno, f"{name} loads {single_line(text)}, which is a file of the submission"
    elif name in ("sys.path.insert", "sys.path.append") and call.args and _leads_to_submission(call.args[-1], up):
        yield call.lineno, "sys.path includes the submission"


def _leads_to_submission(path: ast.expr, up: int) -> bool:
    """True for the working directory, the references, and folders above the tests."""
    text = ast.unparse(path) if sum(1 for _ in ast.walk(path)) < 200 else ""
    if "cwd()" in text or any(PurePosixPath(text).parts[:1] == (SOLUTIONS,) for text in strings(path)):
        return True
    if isinstance(path, ast.Constant):
        return path.value in (".", "")
    rises = text.count(".parent") - text.count(".parents") + text.count("dirname(") + text.count("'..'")
    return "__file__" in text and (rises >= up or f".parents[{up - 1}]" in text)


def solution_modules(folder: Path) -> set[str]:
    """Modules that an import could load from any reference solution."""
    modules: set[str] = set()
    for solution in _entries(folder / SOLUTIONS):
        for entry in _entries(solution.path):
            if entry.name.endswith(".py"):
                modules.add(entry.name.removesuffix(".py"))
            elif entry.is_dir() and any(inner.name.endswith(".py") for inner in _entries(entry.path)):
                modules.add(entry.name)
    return modules


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
