"""Rules for every module of the package: imports, processes, sizes, names."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slop_code import evaluate_run
from slop_code.evaluation import PytestRunner, run_checkpoint_pytest
from slop_code.evaluation.command import judge_sources

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "slop_code"
SOURCES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 400
MAX_PARAMETERS = 6
QUESTION = re.compile(r"(What|When|Whether|Where|How|Which)\b")
QUOTED_QUESTION = re.compile(rf"[\"']\s*{QUESTION.pattern}")
BOUND = re.compile(r"_?(MOST|LONGEST|LARGEST|DEEPEST|FEWEST)_")
PUBLIC_API = (evaluate_run, run_checkpoint_pytest, PytestRunner.__init__)
MANY_PARAMETERS = {(function.__module__, function.__qualname__) for function in PUBLIC_API}
"""Functions whose parameters are settings with defaults."""
VAGUE = {"found", "mend", "place", "told", "trouble"}
VAGUE_ALLOWED = {
    ("slop_code._yaml", "found"),  # the value that stands where another was expected
    ("slop_code.errors", "found"),
    ("slop_code.cli.doctor.doctor_checks", "found"),
}
NEED_OTHER_PACKAGES = {"slop_code.bridges.harbor", "slop_code.bridges.inspect", "slop_code.bridges.verifiers"}
"""Modules of which another system needs classes and decorated functions; without it, an error says what to install."""
CORE_PACKAGES = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection", "yaml"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(parsed(path)))


def imported(path: Path) -> set[str]:
    """Every module of another package that a file names in an import, wherever it stands."""
    names: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def attributes(path: Path) -> set[str]:
    return {node.attr for node in nodes(path) if isinstance(node, ast.Attribute)}


def naming(*words: str, paths: Sequence[Path] = SOURCES) -> list[Path]:
    """The sources that have one of them anywhere: those alone are worth a closer look."""
    texts = {path: path.read_text().lower() for path in paths}
    return [path for path, text in texts.items() if any(word.lower() in text for word in words)]


def at_once(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """What runs when a module is imported itself: in no function, and not for types alone."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.ClassDef | ast.With | ast.Try | ast.If):
            for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            yield from at_once([] if for_types else node.body)
            yield from at_once(getattr(node, "orelse", []))
            yield from (found for part in getattr(node, "handlers", []) for found in at_once(part.body))


def needs(node: ast.Import | ast.ImportFrom, path: Path, known: Container[str]) -> Iterator[str]:
    """A package is needed where one of its names is asked for that is no module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    own = module_name(path.parent / "__init__.py") if node.level else None
    package = ".".join(part for part in (own, node.module) if part)
    for alias in node.names:
        name = f"{package}.{alias.name}"
        yield name if name in known else package


def test_no_module_needs_another_to_be_imported_first():
    """Each can be imported alone where nothing goes round in a circle, and all can be imported together."""
    known = {module_name(path): path for path in SOURCES}
    graph = {
        name: {need for node in at_once(parsed(path).body) for need in needs(node, path, known)}
        for name, path in known.items()
    }
    assert "slop_code.evaluation.evaluation_state" in graph["slop_code.evaluation.pytest_runner"]
    assert "slop_code.pytest_plugin.fixtures" in graph["slop_code.pytest_plugin"]
    assert set(graphlib.TopologicalSorter(graph).static_order()) >= set(known)


@pytest.mark.e2e
def test_every_module_imports_without_warnings():
    """With warnings as errors."""
    names = [name for name in map(module_name, SOURCES) if not name.endswith("__main__")]
    code = """if True:
        import importlib, sys
        from slop_code import UsageError
        for name in sys.argv[1:]:
            try:
                importlib.import_module(name)
            except UsageError as error:
                print(name, "install it: pip install " in str(error))
    """
    argv = [sys.executable, "-W", "error", "-c", code, *names]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()) <= {f"{name} True" for name in NEED_OTHER_PACKAGES}


@pytest.mark.e2e
def test_imports_go_one_way():
    linter = Path(sys.executable).parent / "lint-imports"
    argv = [str(linter) if linter.exists() else "lint-imports", "--no-cache"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_one_door_to_processes():
    users = {module_name(path) for path in naming("subprocess") if "subprocess" in imported(path)}
    assert users == {"slop_code.execution.process", "slop_code.pytest_plugin.submission_calls"}


@pytest.mark.parametrize(
    "call", ["system", "popen", "fork", "forkpty", "posix_spawn", "spawnv", "spawnl", "execv", "execvp"]
)
def test_no_other_way_to_processes(call):
    """The driver of scb-check and the judge's templates run in a box, on a Python without slop-code."""
    users = {module_name(path) for path in naming(call) if call in attributes(path)}
    forking = {"quality.scb_check_driver", "evaluation.judge.fork_server", "evaluation.judge.supervisor"}
    in_boxes = {"fork": forking, "posix_spawn": {"evaluation.judge.supervisor"}}
    assert users == {f"slop_code.{name}" for name in in_boxes.get(call, ())}


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_modules_stay_short_and_well_named(path):
    assert len(path.read_text().splitlines()) <= MAX_LINES
    assert path.stem not in ("utils", "common", "helpers", "misc")


@pytest.mark.parametrize("path", judge_sources().values(), ids=module_name)
def test_code_of_the_judge_imports_only_the_standard_library_and_pytest(path):
    """The fixtures import slop_code in functions, which run only where it is installed."""
    allowed = {*sys.stdlib_module_names, "pytest", "_pytest"}
    at_import = {
        need.partition(".")[0]
        for node in at_once(parsed(path).body)
        if isinstance(node, ast.Import) or not node.level
        for need in needs(node, path, ())
    }
    assert at_import <= allowed
    later = {"slop_code"} if path == PACKAGE / "pytest_plugin" / "__init__.py" else set()
    assert {name.partition(".")[0] for name in imported(path)} - allowed == later


def test_commands_import_runs_late():
    """Help and mistakes in arguments load nothing that evaluates; the names of a layout need no imports."""
    statements = [node for path in (PACKAGE / "cli").rglob("*_command.py") for node in parsed(path).body]
    modules = [node.module or "" for node in statements if isinstance(node, ast.ImportFrom)]
    assert modules
    assert {name for name in modules if name.startswith("slop_code.runs")} == {"slop_code.runs.layout_names"}
    assert imported(PACKAGE / "runs/layout_names.py") == set()


@pytest.mark.e2e
def test_the_core_loads_only_pydantic_and_yaml():
    """Modules without a file are parts of compiled ones."""
    code = """if True:
        import sys
        before = set(sys.modules)
        import slop_code.evaluation, slop_code.runs
        new = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(*(name for name in new - sys.stdlib_module_names if getattr(sys.modules[name], "__file__", None)))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if not name.startswith("_sysconfigdata_")}
    assert loaded - CORE_PACKAGES == {"slop_code"}


def public_classes(path: Path) -> list[str]:
    return [node.name for node in nodes(path) if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def functions(path: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """With their names, those of methods after the class."""
    methods = {
        node: f"{owner.name}.{node.name}"
        for owner in nodes(path)
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield methods.get(node, node.name), node


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = function.args
    names = [parameter.arg for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def repeated(names: Iterator[tuple[str, Path]]) -> dict[str, list[str]]:
    users: defaultdict[str, list[str]] = defaultdict(list)
    for name, path in names:
        users[name].append(module_name(path))
    return {name: modules for name, modules in users.items() if len(modules) > 1}


def test_no_two_modules_have_the_same_name():
    apart = ("__init__", "__main__")
    assert repeated((path.stem, path) for path in SOURCES if path.stem not in apart) == {}


def test_no_two_public_classes_have_the_same_name():
    assert repeated((name, path) for path in SOURCES for name in public_classes(path)) == {}


def test_docstrings_of_modules_are_noun_phrases():
    others = [path for folder in (".ci", "benchmarks", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
    files = [*SOURCES, *others, ROOT / "hatch_build.py"]
    begin = {path: ast.get_docstring(parsed(path)) or "" for path in files if QUOTED_QUESTION.search(path.read_text())}
    assert [str(path.relative_to(ROOT)) for path, text in begin.items() if QUESTION.match(text)] == []


def test_bounds_are_called_max_and_min():
    names = [
        (module_name(path), node.id)
        for path in SOURCES
        for node in nodes(path)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and BOUND.match(node.id)
    ]
    assert names == []


def test_functions_have_few_parameters():
    many = [
        (module_name(path), name)
        for path in SOURCES
        for name, function in functions(path)
        if len(parameters(function)) > MAX_PARAMETERS
    ]
    assert set(many) == MANY_PARAMETERS


def defined_names(path: Path) -> Iterator[str]:
    """Of classes, functions, parameters and variables."""
    for node in nodes(path):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_nothing_has_a_vague_name():
    names = {(module_name(path), name) for path in naming(*VAGUE) for name in defined_names(path)}
    assert {(module, name) for module, name in names if name.strip("_").lower() in VAGUE} == VAGUE_ALLOWED


def test_nothing_in_the_tests_has_a_vague_name():
    """Except for `found`: the observed value, beside the expected one."""
    vague = VAGUE - {"found"}
    named = naming(*vague, paths=sorted((ROOT / "tests").rglob("*.py")))
    names = {(path, name) for path in named for name in defined_names(path)}
    assert [(str(path.relative_to(ROOT)), name) for path, name in names if name.strip("_").lower() in vague] == []


def fixtures_called(name: str) -> list[str]:
    return [
        str(path.relative_to(ROOT))
        for path in naming(f"def {name}(", paths=sorted((ROOT / "tests").rglob("*.py")))
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef)
        and node.name == name
        and any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]


def test_only_the_shared_cache_is_a_fixture_called_cache():
    """Tests that ask for it are marked `e2e`, and so would be those that ask for another of that name."""
    assert fixtures_called("cache") == ["tests/conftest.py"]
