"""Rules about imports of tests: undeclared packages, unused dependencies, and the submission itself."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import single_line
from slop_code.authoring.check.findings import Finding, Location, Rule, Severity
from slop_code.authoring.check.layout.problem_files import (
    aliases,
    dotted,
    full_name,
    module_name,
    names_in,
    nodes,
    strings,
    top_level_modules,
)
from slop_code.authoring.check.layout.python_packages import distribution, given_modules, modules_of, package_for
from slop_code.authoring.check.yaml_keys import line_of_key
from slop_code.authoring.problem_folders import SOLUTIONS
from slop_code.evaluation.problem.problem_lookup import CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
IMPORTED = Rule.error(
    "imports-submission",
    "A test imports the submission",
    "Start it by its entrypoint. If the specification asks for a module, set in_process: true in config.yaml: "
    "the submission can then forge its verdict.",
)
LOADERS = {
    "__import__": 0,
    "importlib.import_module": 0,
    "importlib.util.spec_from_file_location": 1,
    "runpy.run_module": 0,
    "runpy.run_path": 0,
}
"""Functions that load code by name, with the index of the argument that holds the name."""


def undeclared(files: ProblemFiles) -> Iterator[Finding]:
    """Only a warning where the problem has dependencies, since these may bring the package along."""
    declared = files.problem.test_dependencies
    if None in map(distribution, declared) or files.problem.in_process:
        return
    given = modules_without_submission(files) | solution_modules(files.folder)
    for source in files.sources:
        for line, module in imports(source.tree):
            if module in given:
                continue
            name = package_for(module) or "the package that provides it"
            message = f"{single_line(module)} is imported, and nothing in test_dependencies provides it"
            severity = Severity.WARNING if declared else None
            fix = f"Add {name} to test_dependencies in config.yaml."
            yield Finding(UNDECLARED, Location(source.file, line), message, fix, severity)


def modules_without_submission(files: ProblemFiles) -> set[str]:
    """The modules of the test tools, of the declared packages and of the tests folder."""
    packages = map(distribution, files.problem.test_dependencies)
    modules = {module for package in packages if package for module in modules_of(package)}
    modules |= {module_name(file) for file in files.files if file.suffix == ".py"}
    return modules | given_modules() | {part for file in files.files for part in file.parts[:-1]}


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
    start = line_of_key(config, "test_dependencies")
    if start is None:
        return None
    lines = enumerate(config.splitlines()[start - 1 :], start)
    return next((number for number, line in lines if requirement in line), start)


def _mentioned(files: ProblemFiles) -> set[str]:
    names: set[str] = set()
    for text in files.strings():
        names |= {*text.replace("=", " ").replace(".", " ").split()} if len(text) < 1000 else set()
    for node in files.nodes():
        if isinstance(node, ast.arg):
            names |= {*node.arg.split("_"), node.arg}
        names.update(top_level_modules(node))
    return names


def imports_submission(files: ProblemFiles) -> Iterator[Finding]:
    if files.problem.in_process:
        return
    modules = solution_modules(files.folder) - modules_without_submission(files)
    for source in files.sources:
        for line, message in loads(source.tree, modules, up=len(PurePosixPath(source.file).parts)):
            yield Finding(IMPORTED, Location(source.file, line), message)


def loads(tree: ast.Module, modules: set[str], up: int = 2) -> Iterator[tuple[int, str]]:
    """Line and message of each import of these modules. The folder above the tests is `up` parents above the file."""
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
    for solution in names_in(folder / SOLUTIONS):
        for name in names_in(folder / SOLUTIONS / solution):
            inner = folder / SOLUTIONS / solution / name
            if name.endswith(".py") or any(file.endswith(".py") for file in names_in(inner)):
                modules.add(name.removesuffix(".py"))
    return modules
