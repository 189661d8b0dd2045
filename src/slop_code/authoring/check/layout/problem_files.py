"""Files of a problem, read once for all rules of the step `layout`."""

from __future__ import annotations

import ast
import functools
import os
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code._io import read_bounded
from slop_code.authoring.check.python_sources import MAX_BYTES, PythonSource, read_source
from slop_code.errors import ConfigError
from slop_code.evaluation.problem.problem_lookup import CONFIG
from slop_code.evaluation.selection import files_in, folders_of_tests, is_test_file
from slop_code.evaluation.test_code.find_test_code import loaded_files
from slop_code.evaluation.test_code.python_imports import Imports, read_imports, texts_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.environment import EnvironmentSpec

TESTS = "tests"


@dataclass(frozen=True, slots=True)
class ProblemFiles:
    problem: ProblemConfig
    environment: EnvironmentSpec
    config: str
    specs: str
    """The specifications of all checkpoints."""

    files: tuple[PurePosixPath, ...]
    """All files below tests/, relative to it."""

    sources: tuple[PythonSource, ...]
    """Test files, conftests, and modules of the tests folder that these import."""

    broken: tuple[tuple[str, SyntaxError], ...] = ()
    """Those that Python cannot parse."""

    unread: tuple[str, ...] = ()
    """Those that are too large to parse."""

    failure: str | None = None
    """The reason why the tests folder cannot be listed."""

    @property
    def folder(self) -> Path:
        return self.problem.path

    @property
    def complete(self) -> bool:
        """True where all files were read, so that a missing name is really missing."""
        return not (self.broken or self.unread or self.failure)

    def nodes(self) -> Iterator[ast.AST]:
        """All nodes of all sources."""
        return (node for source in self.sources for node in nodes(source.tree))

    def strings(self) -> Iterator[str]:
        return (text for source in self.sources for text in strings(source.tree))

    @property
    def data(self) -> list[PurePosixPath]:
        """Files that are not loaded as Python."""
        code = {source.file for source in self.sources} | {file for file, _ in self.broken} | {*self.unread}
        return [file for file in self.files if f"{TESTS}/{file}" not in code]


def read_problem(problem: ProblemConfig, environment: EnvironmentSpec) -> ProblemFiles:
    failure: str | None = None
    files: tuple[PurePosixPath, ...] = ()
    tests = problem.path / TESTS
    if os.path.lexists(tests) and not tests.is_dir():
        failure = "it is not a folder"
    try:
        files = tuple(files_in(tests))
    except ConfigError as error:
        failure = str(error)
    sources, broken, unread = _load(problem, files)
    specs = "\n".join(read_text(problem.path / f"{name}.md") for name in problem.checkpoints)
    return ProblemFiles(
        problem, environment, read_text(problem.path / CONFIG), specs, files, sources, broken, unread, failure
    )


def read_text(path: Path) -> str:
    """Empty for files that are missing, too large or not readable."""
    try:
        return read_bounded(path.resolve(), MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError, RuntimeError):
        return ""


def names_in(folder: Path) -> list[str]:
    """Empty for what is no folder, or cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


Loaded = tuple[tuple[PythonSource, ...], tuple[tuple[str, SyntaxError], ...], tuple[str, ...]]


def _load(problem: ProblemConfig, files: Sequence[PurePosixPath]) -> Loaded:
    """Test files and conftests, with everything that they import from the tests folder.

    If a test computes the name of an import, every Python file counts, except data that this Python cannot parse.
    """
    folder, read = problem.path, dict[PurePosixPath, PythonSource | SyntaxError | None]()

    def imports(file: PurePosixPath) -> Imports:
        name = f"{TESTS}/{file}"
        source = read[file] = None if _size(folder / name) > MAX_BYTES else read_source(folder, name)
        return read_imports(source.tree) if isinstance(source, PythonSource) else Imports()

    folders = folders_of_tests(files, problem.checkpoints)
    start = [file for file in files if _is_loaded(file) and file.parent in folders]
    if loaded_files(files, start, imports) is None:
        others = [file for file in files if file.suffix == ".py" and file not in read]
        for file in others:
            imports(file)
            if isinstance(read[file], SyntaxError) and file not in start:
                del read[file]
    sources = [source for source in read.values() if isinstance(source, PythonSource)]
    broken = [(f"{TESTS}/{file}", source) for file, source in read.items() if isinstance(source, SyntaxError)]
    return tuple(sources), tuple(broken), tuple(f"{TESTS}/{file}" for file, source in read.items() if source is None)


def _is_loaded(file: PurePosixPath) -> bool:
    return is_test_file(file.name) or file.name == "conftest.py"


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def module_name(file: PurePosixPath) -> str:
    """The name to import; a package has the name of its folder."""
    return file.parent.name if file.name == "__init__.py" else file.stem


def top_level_modules(node: ast.AST) -> list[str]:
    """The modules of an absolute import; empty for other nodes."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module.partition(".")[0]]
    return []


def called(call: ast.Call) -> str:
    """The last part of the function's name: `sleep` of `time.sleep(1)`."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def dotted(node: ast.AST) -> str:
    """`os.path.join` of such an expression; empty for anything that is not names and dots."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


@functools.lru_cache(maxsize=256)
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All nodes of a file, cached for all rules."""
    return tuple(ast.walk(tree))


def strings(node: ast.AST) -> Iterator[str]:
    return texts_in(nodes(node) if isinstance(node, ast.Module) else ast.walk(node))


@functools.lru_cache(maxsize=256)
def aliases(tree: ast.Module) -> Mapping[str, str]:
    """Full names by the aliases of a file's imports: `{"nap": "time.sleep", "t": "time"}`."""
    names: dict[str, str] = {}
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                names[bound] = alias.name if alias.asname else bound
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def full_name(node: ast.AST, known: Mapping[str, str]) -> str:
    """`time.sleep` for `nap` after `from time import sleep as nap`; empty for names that are not imported."""
    first, dot, rest = dotted(node).partition(".")
    return f"{known[first]}{dot}{rest}" if first in known else ""
