"""Tests that never run because of how they are named, or because Python cannot read their file."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import in_line
from slop_code.authoring.check.findings import Finding, Location, Rule, Severity
from slop_code.authoring.check.layout.problem_files import dotted, nodes
from slop_code.authoring.check.python_sources import Definition, definitions
from slop_code.evaluation.selection import is_test_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.check.layout.problem_files import ProblemFiles
    from slop_code.authoring.check.python_sources import PythonSource

UNREADABLE = Rule(
    "python-unreadable",
    Severity.ERROR,
    "Python cannot read a file of the tests",
    "Correct it: nothing of this checkpoint can be evaluated as it is.",
    in_code=False,
)
HIDDEN = Rule(
    "test-hidden",
    Severity.ERROR,
    "A later test of the same name hides this one",
    "Rename one of the two.",
)
NOT_COLLECTED = Rule(
    "test-not-collected",
    Severity.WARNING,
    "pytest does not see a test",
    "Name test functions test_…, test classes Test…, and give these no __init__.",
)
FIXTURE_NAME = Rule(
    "fixture-named-like-test",
    Severity.NOTE,
    "A fixture is named like a test",
    "Rename it: a reader takes it for a test, and pytest is asked for it by a name that looks like one.",
)
RULES = (UNREADABLE, HIDDEN, NOT_COLLECTED, FIXTURE_NAME)

MISSPELT = re.compile(r"(tset|tets|tes|tst|ttest|teest|tesst|Test|TEST)_\w")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def has_tests(tree: ast.Module) -> bool:
    """Whether pytest would look for tests in here."""
    return any(
        (node.name.startswith("test") and not isinstance(node, ast.ClassDef))
        or (node.name.startswith("Test") and isinstance(node, ast.ClassDef))
        for node in definitions(tree.body)
    )


def unreadable(reading: ProblemFiles) -> Iterator[Finding]:
    for file, error in reading.broken:
        yield Finding(UNREADABLE, Location(file, error.lineno), f"{in_line(file)}: {in_line(error.msg or str(error))}")


def named(reading: ProblemFiles) -> Iterator[Finding]:
    used = _used_names(reading)
    for source in reading.sources:
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
            message = f"{in_line(node.name)} never runs: line {later.lineno} defines the same name again"
            yield _finding(HIDDEN, source, node, message)


def _counts(node: Definition) -> bool:
    if isinstance(node, ast.ClassDef):
        return node.name.startswith("Test")
    return node.name.startswith("test") and not is_fixture(node)


def _functions(source: PythonSource, used: set[str]) -> Iterator[Finding]:
    for body in (source.tree.body, *(node.body for node in _test_classes(source.tree))):
        for node in definitions(body):
            if isinstance(node, ast.ClassDef) or node.name.startswith("test") or is_fixture(node) or node.name in used:
                continue
            if MISSPELT.match(node.name):
                yield _finding(NOT_COLLECTED, source, node, f"{in_line(node.name)} is no name of a test")
            elif _is_marked(node):
                message = f"{in_line(node.name)} has a pytest marker, but no name of a test"
                yield _finding(NOT_COLLECTED, source, node, message)


def _test_classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    for node in definitions(tree.body):
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield node


def _classes(source: PythonSource, used: set[str]) -> Iterator[Finding]:
    """A class with a base may be one of unittest's; one that is used elsewhere may be a base itself."""
    for node in definitions(source.tree.body):
        if not isinstance(node, ast.ClassDef) or node.bases:
            continue
        methods = [one for one in definitions(node.body) if isinstance(one, Function)]
        if not any(one.name.startswith("test") and not is_fixture(one) for one in methods):
            continue
        if node.name.startswith("Test"):
            if any(one.name in ("__init__", "__new__") for one in methods):
                message = f"pytest leaves out {in_line(node.name)}: it has an __init__"
                yield _finding(NOT_COLLECTED, source, node, message)
        elif node.name not in used:
            message = f"the tests in {in_line(node.name)} are not seen: the name of their class has to begin with Test"
            yield _finding(NOT_COLLECTED, source, node, message)


def _fixtures(source: PythonSource, scope: list[ast.stmt]) -> Iterator[Finding]:
    for node in definitions(scope):
        if isinstance(node, Function) and node.name.startswith("test_") and is_fixture(node):
            yield _finding(FIXTURE_NAME, source, node, f"the fixture {in_line(node.name)} is named like a test")


def is_fixture(node: Definition) -> bool:
    return any(dotted(_plain(one)).rpartition(".")[2] in ("fixture", "yield_fixture") for one in node.decorator_list)


def _is_marked(node: Definition) -> bool:
    return any(".mark." in f".{dotted(_plain(one))}" for one in node.decorator_list)


def _plain(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _used_names(reading: ProblemFiles) -> set[str]:
    found: set[str] = set()
    for source in reading.sources:
        for node in nodes(source.tree):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.ImportFrom):
                found |= {alias.name for alias in node.names}
    return found


def _finding(rule: Rule, source: PythonSource, node: Definition, message: str) -> Finding:
    return Finding(rule, Location(source.file, node.lineno), message)
