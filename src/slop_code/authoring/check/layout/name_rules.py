"""Rules about tests that never run: invalid files, hidden definitions, names that pytest does not collect."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import single_line
from slop_code.authoring.check.findings import Finding, Location, Rule
from slop_code.authoring.check.layout.problem_files import dotted, nodes
from slop_code.authoring.check.python_sources import Definition, definitions
from slop_code.evaluation.selection import is_test_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.check.layout.problem_files import ProblemFiles
    from slop_code.authoring.check.python_sources import PythonSource

UNREADABLE = Rule.error(
    "python-unreadable",
    "A Python file of the tests is invalid",
    "Correct it: until then, the checkpoint cannot be evaluated.",
    in_code=False,
)
HIDDEN = Rule.error("test-hidden", "A later test of the same name hides a test", "Rename one of the two.")
NOT_COLLECTED = Rule.warning(
    "test-not-collected",
    "pytest does not collect a test",
    "Name test functions test_…, name test classes Test…, and give these classes no __init__.",
)
FIXTURE_NAME = Rule.note(
    "fixture-named-like-test", "A fixture is named like a test", "Rename it: a reader takes it for a test."
)
MISSPELT = re.compile(r"(tset|tets|tes|tst|ttest|teest|tesst|Test|TEST)_\w")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def has_tests(tree: ast.Module) -> bool:
    """True where pytest would collect tests."""
    return any(
        (node.name.startswith("test") and not isinstance(node, ast.ClassDef))
        or (node.name.startswith("Test") and isinstance(node, ast.ClassDef))
        for node in definitions(tree.body)
    )


DYNAMIC_NAMES = ("*", "exec", "globals", "locals", "setattr", "vars")
"""Ways to make functions whose names no reader of the file knows."""


def may_have_tests(tree: ast.Module) -> bool:
    """False only where pytest surely collects nothing: a test may be imported, assigned or inherited."""
    for node in nodes(tree):
        if isinstance(node, ast.ClassDef) and node.bases:
            return True
        if isinstance(node, Definition):
            names = [node.name]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, ast.Name):
            names = [node.id]
        else:
            continue
        if any(name in DYNAMIC_NAMES or name.lower().startswith("test") for name in names):
            return True
    return False


def unreadable(files: ProblemFiles) -> Iterator[Finding]:
    for file, error in files.broken:
        message = f"{single_line(file)}: {single_line(error.msg or str(error))}"
        yield Finding(UNREADABLE, Location(file, error.lineno), message)


def named(files: ProblemFiles) -> Iterator[Finding]:
    used = _used_names(files)
    for source in files.sources:
        test_file = is_test_file(source.file.rpartition("/")[2])
        for scope in _scopes(source.tree):
            yield from _fixtures(source, scope)
            if test_file:
                yield from _hidden(source, scope)
        if test_file:
            yield from _functions(source, used)
            yield from _classes(source, used)


def _scopes(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    yield tree.body
    yield from (node.body for node in definitions(tree.body) if isinstance(node, ast.ClassDef))


def _hidden(source: PythonSource, scope: list[ast.stmt]) -> Iterator[Finding]:
    last: dict[str, Definition] = {node.name: node for node in definitions(scope) if _counts(node)}
    for node in definitions(scope):
        later = last.get(node.name)
        if later is not None and later is not node and _counts(node):
            message = f"{single_line(node.name)} never runs: line {later.lineno} defines the same name again"
            yield _finding(HIDDEN, source, node, message)


def _counts(node: Definition) -> bool:
    if isinstance(node, ast.ClassDef):
        return node.name.startswith("Test")
    return node.name.startswith("test") and not is_fixture(node)


def _functions(source: PythonSource, used: set[str]) -> Iterator[Finding]:
    classes = [node for node in definitions(source.tree.body) if isinstance(node, ast.ClassDef)]
    for body in (source.tree.body, *(node.body for node in classes if node.name.startswith("Test"))):
        for node in definitions(body):
            if isinstance(node, ast.ClassDef) or node.name.startswith("test") or is_fixture(node) or node.name in used:
                continue
            if MISSPELT.match(node.name):
                yield _finding(NOT_COLLECTED, source, node, f"{single_line(node.name)} is not the name of a test")
            elif _is_marked(node):
                message = f"{single_line(node.name)} has a pytest marker, and not the name of a test"
                yield _finding(NOT_COLLECTED, source, node, message)


def _classes(source: PythonSource, used: set[str]) -> Iterator[Finding]:
    """Classes with a base may be unittest classes; classes that are used elsewhere may be bases."""
    for node in definitions(source.tree.body):
        if not isinstance(node, ast.ClassDef) or node.bases:
            continue
        methods = [item for item in definitions(node.body) if isinstance(item, Function)]
        if not any(method.name.startswith("test") and not is_fixture(method) for method in methods):
            continue
        if node.name.startswith("Test"):
            if any(method.name in ("__init__", "__new__") for method in methods):
                message = f"pytest ignores {single_line(node.name)}: it has an __init__"
                yield _finding(NOT_COLLECTED, source, node, message)
        elif node.name not in used:
            message = f"tests in {single_line(node.name)} are not collected: the class name has to begin with Test"
            yield _finding(NOT_COLLECTED, source, node, message)


def _fixtures(source: PythonSource, scope: list[ast.stmt]) -> Iterator[Finding]:
    for node in definitions(scope):
        if isinstance(node, Function) and node.name.startswith("test_") and is_fixture(node):
            yield _finding(FIXTURE_NAME, source, node, f"the fixture {single_line(node.name)} is named like a test")


def is_fixture(node: Definition) -> bool:
    return any(dotted(_plain(item)).rpartition(".")[2] in ("fixture", "yield_fixture") for item in node.decorator_list)


def _is_marked(node: Definition) -> bool:
    return any(".mark." in f".{dotted(_plain(item))}" for item in node.decorator_list)


def _plain(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _used_names(files: ProblemFiles) -> set[str]:
    names: set[str] = set()
    for node in files.nodes():
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names}
    return names


def _finding(rule: Rule, source: PythonSource, node: Definition, message: str) -> Finding:
    return Finding(rule, Location(source.file, node.lineno), message)
