"""Rules about undeclared imports and unused dependencies of tests."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import single_line
from slop_code.authoring.check.findings import Finding, Location, Rule, Severity
from slop_code.authoring.check.layout.problem_files import dotted, module_name, nodes, strings, top_level_modules
from slop_code.authoring.check.layout.python_packages import distribution, given_modules, modules_of, package_for
from slop_code.authoring.check.layout.submission_import_rules import solution_modules
from slop_code.authoring.check.yaml_keys import line_of
from slop_code.authoring.problem_folders import CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.check.layout.problem_files import ProblemFiles

UNDECLARED = Rule.error(
    "import-undeclared",
    "A test imports a package that is not installed for it",
    "Add the package to test_dependencies in config.yaml.",
)
UNUSED = Rule.warning(
    "dependency-unused",
    "No test imports a package of test_dependencies",
    "Remove it from config.yaml: it is installed for every evaluation.",
    in_code=False,
)
RULES = (UNDECLARED, UNUSED)


def undeclared(files: ProblemFiles) -> Iterator[Finding]:
    """Only a warning where the problem has dependencies, since these may bring the package along."""
    declared = files.problem.test_dependencies
    packages = [distribution(requirement) for requirement in declared]
    if None in packages or files.problem.in_process:
        return
    given = {module for package in packages if package for module in modules_of(package)}
    given |= given_modules() | solution_modules(files.folder)
    given |= {module_name(file) for file in files.files if file.suffix == ".py"}
    given |= {part for file in files.files for part in file.parts[:-1]}
    for source in files.sources:
        for line, module in imports(source.tree):
            if module in given:
                continue
            package = package_for(module)
            name = package or "the package that provides it"
            message = f"{single_line(module)} is imported, and nothing in test_dependencies provides it"
            severity = Severity.WARNING if declared else None
            fix = f"Add {name} to test_dependencies in config.yaml."
            yield Finding(UNDECLARED, Location(source.file, line), message, fix, severity)


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and top-level module of each import that has to succeed."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((node.lineno, module) for module in top_level_modules(node))
        elif isinstance(node, ast.Try) and any(_forgives(handler) for handler in node.handlers):
            waiting += [*node.handlers, *node.orelse, *node.finalbody]
        elif isinstance(node, ast.If) and _is_for_types(node.test):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def _is_for_types(condition: ast.expr) -> bool:
    return any(dotted(node).rpartition(".")[2] == "TYPE_CHECKING" for node in ast.walk(condition))


def _forgives(handler: ast.ExceptHandler) -> bool:
    caught = ast.walk(handler.type) if handler.type is not None else ()
    names = {node.id for node in caught if isinstance(node, ast.Name)}
    return handler.type is None or bool(names & {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def unused(files: ProblemFiles) -> Iterator[Finding]:
    """Any mention counts, as a package may be needed for its fixtures or its command; plugins need no mention."""
    if not files.complete or files.problem.in_process:
        return
    mentioned = _mentioned(files)
    for requirement in files.problem.test_dependencies:
        package = distribution(requirement)
        if package is None or package.startswith("pytest"):
            continue
        if not mentioned & {package, *modules_of(package)}:
            line = _entry_line(files.config, requirement)
            yield Finding(UNUSED, Location(CONFIG, line), f"no test imports {single_line(package)}")


def _entry_line(config: str, requirement: str) -> int | None:
    start = line_of(config, "test_dependencies")
    if start is None:
        return None
    lines = config.splitlines()
    for number, line in enumerate(lines[start - 1 :], start):
        if requirement in line:
            return number
    return start


def _mentioned(files: ProblemFiles) -> set[str]:
    names: set[str] = set()
    for source in files.sources:
        for text in strings(source.tree):
            names |= {*text.replace("=", " ").replace(".", " ").split()} if len(text) < 1000 else set()
        for node in nodes(source.tree):
            if isinstance(node, ast.arg):
                names |= {*node.arg.split("_"), node.arg}
            names.update(top_level_modules(node))
    return names
