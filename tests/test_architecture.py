"""What holds for every module of the package."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "slop_code"
SOURCES = sorted(PACKAGE.rglob("*.py"))
LONGEST = 400


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """Every module that a file names in an import, wherever it stands."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def attributes(path: Path) -> set[str]:
    return {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}


def naming(word: str) -> list[Path]:
    """The sources that have it anywhere: those alone are worth a closer look."""
    return [path for path in SOURCES if word in path.read_text()]


# What others wrote is loaded once; of ours each process has nothing but what its module asks for.
ALONE = """
import json, os, sys, traceback
import pydantic, yaml, rich.console, rich.live, rich.progress, rich.table

for name in sys.argv[1:]:
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            __import__(name)
            said = "fine"
        except BaseException:
            said = traceback.format_exc()
        os.write(write, said.encode()[-2000:])
        os._exit(0)
    os.close(write)
    with open(read) as stream:
        print(json.dumps([name, stream.read()]), flush=True)
    os.wait()
"""


@pytest.fixture(scope="module")
def imports():
    """Each module imported alone, with warnings as errors: its name and what came of it."""
    names = [name for name in map(module_name, SOURCES) if not name.endswith("__main__")]
    argv = [sys.executable, "-W", "error", "-c", ALONE, *names]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=True)
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.e2e
def test_every_module_imports_alone(imports):
    assert len(imports) > 30
    assert {name: said for name, said in imports.items() if said != "fine"} == {}


@pytest.mark.e2e
def test_imports_go_one_way():
    linter = Path(sys.executable).parent / "lint-imports"
    argv = [str(linter) if linter.exists() else "lint-imports", "--no-cache"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_one_door_to_processes():
    users = {module_name(path) for path in naming("subprocess") if "subprocess" in imported(path)}
    assert users == {"slop_code.execution.process", "slop_code.pytest_plugin.calls"}


@pytest.mark.parametrize(
    "call", ["system", "popen", "fork", "forkpty", "posix_spawn", "spawnv", "spawnl", "execv", "execvp"]
)
def test_no_other_way_to_processes(call):
    """But for the helper's stand-in, which is a program and no part of the package's own processes."""
    for path in naming(call):
        assert path.parent.name == "fallback" or call not in attributes(path), path


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_modules_stay_short_and_well_named(path):
    assert len(path.read_text().splitlines()) <= LONGEST
    assert path.stem not in ("utils", "common", "helpers", "misc")


def test_what_runs_inside_the_judge_needs_the_standard_library_and_pytest_alone():
    allowed = {*sys.stdlib_module_names, "pytest", "_pytest"}
    names = {name.partition(".")[0] for name in imported(PACKAGE / "evaluation" / "judge" / "plugin.py")}
    assert names - allowed == set()


@pytest.mark.e2e
def test_the_core_loads_nothing_heavy():
    heavy = {"rich", "ray", "docker", "typer"}
    code = f"import sys, slop_code.evaluation, slop_code.runs; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
