"""Imports of a Python file, read from its syntax tree: modules, files that it loads by path, changes of `sys.path`."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

BY_NAME = frozenset({
    "import_module", "__import__", "importorskip", "run_module", "find_spec", "resolve_name", "import_plugin",
})  # fmt: skip
"""Functions that load the module that their first argument names."""

BY_PATH = {
    "spec_from_file_location": 1, "SourceFileLoader": 1, "SourcelessFileLoader": 1, "load_source": 1,
    "run_path": 0, "import_path": 0,
}  # fmt: skip
"""Functions that load a file, with the position of its path among their arguments."""

EXECUTING = frozenset({"exec", "eval", "compile"})
LOADERS = frozenset({*BY_NAME, *BY_PATH, *EXECUTING})
LOADER_MODULES = ("importlib", "runpy", "pkgutil", "imp")
BUILTINS = frozenset({*EXECUTING, "__import__", "getattr", "str"})
STARTING = frozenset({
    "run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput", "system", "popen",
    "create_subprocess_exec", "create_subprocess_shell",
})  # fmt: skip
"""Functions that start a program. Elsewhere a text such as `python main.py` may be the submission's own command."""

PYTHON_COMMAND = re.compile(r"\s*(?:\S*/)?python[0-9.]*(?:\s|$)")
PATH_CHANGES = frozenset({"syspath_prepend", "addsitedir"})
PLUGINS = "pytest_plugins"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Imports:
    modules: frozenset[tuple[int, str]] = frozenset()
    """The level and the dotted name of each import; level 0 is an absolute import, `*` a part of a name."""

    files: frozenset[str] = frozenset()
    """Names of files that are loaded by path, or that the tests' own interpreter runs, without their folders."""

    changes_path: bool = False
    changes_path_later: bool = False
    """`sys.path` is changed in a function, and so perhaps after the file was loaded."""

    runs_computed: bool = False
    """The tests' own interpreter runs a file whose name only the running program knows."""

    computed: bool = False
    """A module or file is loaded whose name only the running program knows."""


UNKNOWN_IMPORTS = Imports(computed=True)


def read_imports(source: bytes | str | ast.Module) -> Imports:
    """Raises what `ast.parse` raises."""
    tree = source if isinstance(source, ast.Module) else ast.parse(source)
    nodes = list(ast.walk(tree))
    reader = _Reader(_aliases(nodes), {node.id: [] for node in nodes if isinstance(node, ast.Name)})
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    reader.values[target.id].append(node.value)
    calls = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    passed_on = any(reader.name(node) in LOADERS and id(node) not in calls for node in nodes)
    later = [inner for node in nodes if isinstance(node, FUNCTIONS) for inner in ast.walk(node)]
    for node in nodes:
        reader.read(node)
    return Imports(
        frozenset(reader.modules),
        frozenset(reader.files),
        any(map(_changes_path, nodes)),
        any(map(_changes_path, later)),
        reader.runs_computed,
        reader.computed or passed_on,
    )


class _Reader:
    def __init__(self, aliases: dict[str, str], values: dict[str, list[ast.expr]]) -> None:
        self.aliases, self.values = aliases, values
        self.modules: set[tuple[int, str]] = set()
        self.files: set[str] = set()
        self.computed = self.runs_computed = False
        self.own_pythons: dict[str, bool] = {}
        self.python_texts: dict[str, bool] = {}

    def name(self, node: ast.AST) -> str:
        """The last part of the name of something imported or built in, as it was before `import … as …`."""
        if isinstance(node, ast.Attribute):
            is_method = node.attr in BUILTINS and not (isinstance(node.value, ast.Name) and node.value.id == "builtins")
            return "" if is_method else node.attr
        if not isinstance(node, ast.Name):
            return ""
        return node.id if node.id in BUILTINS else self.aliases.get(node.id, "")

    def read(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            self.modules |= {(0, alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            self.modules.add((node.level, module))
            self.modules |= {(node.level, f"{module}.{alias.name}".lstrip(".")) for alias in node.names}
            star = any(alias.name == "*" for alias in node.names)
            self.computed |= star and module.partition(".")[0] in LOADER_MODULES
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value is not None and any(
                isinstance(target, ast.Name) and target.id == PLUGINS for target in targets
            ):
                self.take_names(node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value])
        elif isinstance(node, ast.Call):
            self.read_call(node)
        elif isinstance(node, ast.List | ast.Tuple):
            if any(map(self.is_own_python, node.elts)) or any(self.is_python_text(word) for word in node.elts[:1]):
                self.take_command(node.elts)
        elif isinstance(node, ast.JoinedStr | ast.BinOp) and self.is_own_python(node):
            self.take_command([node])

    def is_own_python(self, word: ast.AST) -> bool:
        return self.any_part(word, lambda node: _dotted(node) == "sys.executable", self.own_pythons)

    def is_python_text(self, word: ast.AST) -> bool:
        return self.any_part(word, _is_python_command, self.python_texts)

    def any_part(self, word: ast.AST, holds: Callable[[ast.AST], bool], known: dict[str, bool]) -> bool:
        """Whether it holds for a part of an expression, or of the values of its variables, which `known` remembers."""
        for node in ast.walk(word):
            if holds(node):
                return True
            if isinstance(node, ast.Name):
                if node.id not in known:
                    known[node.id] = False  # until it is known: a variable may be assigned from itself
                    values = self.values.get(node.id, ())
                    known[node.id] = any(self.any_part(value, holds, known) for value in values)
                if known[node.id]:
                    return True
        return False

    def take_command(self, words: Sequence[ast.expr]) -> None:
        """A file that an interpreter runs for the tests, such as a program that computes expected outputs."""
        names = [name for word in words for part in ast.walk(word) for name in self.last_parts(part, 3) if name]
        parts = [part for text in names for part in text.split()]
        files = {part.rpartition("/")[2] for part in parts if part.endswith(".py")}
        modules = {(0, name) for option, name in pairwise(parts) if option == "-m"}
        self.files |= files
        self.modules |= modules
        self.runs_computed |= not (files or modules or "-c" in parts)

    def read_call(self, call: ast.Call) -> None:
        name = self.name(call.func)
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(map(self.is_own_python, values)) or (name in STARTING and any(map(self.is_python_text, values))):
            self.take_command(values)
        if name in BY_NAME:
            self.take_names(values[:1])
        elif name in BY_PATH:
            path = next((word.value for word in call.keywords if word.arg in ("location", "path", "path_name")), None)
            self.take_path(path or next(iter(call.args[BY_PATH[name] :]), None))
        elif name in EXECUTING or (name == "getattr" and any(text in LOADERS for text in _texts(call))):
            self.computed = True

    def take_names(self, values: Iterable[ast.expr]) -> None:
        for value in values:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                text = value.value.lstrip(".")
                level = len(value.value) - len(text)
                self.modules |= {(level, text), (0, text)}
            else:
                self.computed = True

    def take_path(self, value: ast.expr | None) -> None:
        """The last part of the path has to be constant; its folder may be anything."""
        names = [] if value is None else list(self.last_parts(value, 3))
        self.files |= {name.rpartition("/")[2] for name in names if name is not None}
        self.computed |= not names or None in names

    def last_parts(self, value: ast.AST, depth: int) -> Iterator[str | None]:
        """None stands for a part that is not constant."""
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.value
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
            yield from self.last_parts(value.right, depth)
        elif isinstance(value, ast.Call) and self.name(value.func) in ("str", "Path", "join", "joinpath", "fspath"):
            yield from self.last_parts(value.args[-1], depth) if value.args else (None,)
        elif isinstance(value, ast.Name) and depth and self.values.get(value.id):
            for assigned in self.values[value.id]:
                yield from self.last_parts(assigned, depth - 1)
        else:
            yield None


def _aliases(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """What `from … import` imports, by the names that it has in the file."""
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: alias.name for node in imports for alias in node.names}


def _changes_path(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "sys" and any(alias.name == "path" for alias in node.names)
    return _dotted(node) == "sys.path" or (isinstance(node, ast.Attribute) and node.attr in PATH_CHANGES)


def _dotted(node: ast.AST) -> str:
    is_pair = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return f"{node.value.id}.{node.attr}" if is_pair else ""  # type: ignore[attr-defined]


def _is_python_command(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(PYTHON_COMMAND.match(node.value))


def _texts(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value
