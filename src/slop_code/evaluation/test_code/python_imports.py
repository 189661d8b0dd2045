"""Imports of a Python file, read from its syntax tree: modules, files that it loads by path, changes of `sys.path`."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from slop_code.evaluation.test_code.definitions import Definition, definition_of, receiver_of, statements_of
from slop_code.evaluation.test_code.path_patterns import ANY, has_constant_name, join, patterns_in, patterns_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

BY_NAME = frozenset({
    "import_module", "__import__", "importorskip", "run_module", "find_spec", "resolve_name", "import_plugin",
})  # fmt: skip
"""Functions that load the module that their first argument names."""

PATCHING = frozenset({"setattr", "delattr", "patch"})
"""Functions that import the module of their first argument, if that is a dotted name and no object."""

BY_PATH = {
    "spec_from_file_location": 1, "SourceFileLoader": 1, "SourcelessFileLoader": 1, "load_source": 1,
    "run_path": 0, "import_path": 0,
}  # fmt: skip
"""Functions that load a file, with the position of its path among their arguments."""

EXECUTING = frozenset({"exec", "eval", "compile"})
LOADERS = frozenset({*BY_NAME, *BY_PATH, *EXECUTING})
LOADER_MODULES = ("importlib", "runpy", "pkgutil", "imp")
BUILTINS = frozenset({*EXECUTING, "__import__", "getattr"})
STARTING = frozenset({
    "run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput", "system", "popen",
    "create_subprocess_exec", "create_subprocess_shell",
})  # fmt: skip
"""Functions that start a program. Elsewhere a text such as `python main.py` may be the submission's own command."""

PYTHON = r"(?:\S*/)?(?:python[0-9.]*|uvx?)(?:\s|$)"
PYTHON_COMMAND = re.compile(rf"^\s*{PYTHON}")
PYTHON_ANYWHERE = re.compile(rf"(?:^|[\s'\"();&|=]){PYTHON}")
"""In a text for a shell, other words may come first."""

OPTIONS_WITH_CODE = frozenset({"-c", "-m"})
SHELL_MARKS = "'\"`();&|"
PATH_CHANGES = frozenset({"syspath_prepend", "addsitedir"})
PLUGINS = "pytest_plugins"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Imports:
    modules: frozenset[tuple[int, str]] = frozenset()
    """The level and the dotted name of each import; level 0 is an absolute import, `*` a part of a name."""

    files: frozenset[str] = frozenset()
    """Patterns of the files that are loaded by path, or that the tests' own interpreter runs."""

    changes_path: bool = False
    changes_path_later: bool = False
    """`sys.path` is changed in a function, and so perhaps after the file was loaded."""

    computed: bool = False
    """A module or file is loaded whose name only the running program knows."""

    definitions: tuple[Definition, ...] = ()


UNKNOWN_IMPORTS = Imports(computed=True)


def read_imports(source: bytes | str | ast.Module) -> Imports:
    """Everything is possible for a file that cannot be parsed, or whose expressions are nested too deeply."""
    try:
        return _imports_in(source if isinstance(source, ast.Module) else ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return UNKNOWN_IMPORTS


def _imports_in(tree: ast.Module) -> Imports:
    nodes = list(ast.walk(tree))
    reader = _Reader(_aliases(nodes), {node.id: [] for node in nodes if isinstance(node, ast.Name)})
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    reader.values[target.id].append(node.value)
    changes = [node for node in nodes if isinstance(node, ast.Call) and reader.name(node.func) == "chdir"]
    for value in (value for call in changes for value in call.args[:1]):
        reader.folders |= patterns_of(value, reader.values)
    calls = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    passed_on = any(reader.name(node) in LOADERS and id(node) not in calls for node in nodes)
    later = [inner for node in nodes if isinstance(node, FUNCTIONS) for inner in ast.walk(node)]
    definitions = [reader.read_definition(statement, owner) for statement, owner in statements_of(tree)]
    return Imports(
        frozenset(reader.modules),
        frozenset(reader.files),
        any(map(_changes_path, nodes)),
        any(map(_changes_path, later)),
        reader.computed or passed_on or _uses_loader_module(nodes),
        tuple(definitions),
    )


class _Reader:
    def __init__(self, aliases: dict[str, str], values: dict[str, list[ast.expr]]) -> None:
        self.aliases, self.values = aliases, values
        self.modules: set[tuple[int, str]] = set()
        self.files: set[str] = set()
        self.folders: set[str] = set()
        """Patterns of the working directories that the file changes to."""

        self.computed = self.runs_computed = False
        self.own_pythons: dict[str, bool] = {}
        self.python_texts: dict[str, bool] = {}
        self.shell_texts: dict[str, bool] = {}

    def name(self, node: ast.AST) -> str:
        """The last part of the name of something imported or built in, as it was before `import … as …`."""
        if isinstance(node, ast.Attribute):
            is_method = node.attr in BUILTINS and not (isinstance(node.value, ast.Name) and node.value.id == "builtins")
            return "" if is_method else node.attr
        if not isinstance(node, ast.Name):
            return ""
        return node.id if node.id in BUILTINS else self.aliases.get(node.id, "")

    def read_definition(self, statement: ast.AST, owner: str) -> Definition:
        self.runs_computed = False
        nodes = list(ast.walk(statement))
        sums = [node for node in nodes if isinstance(node, ast.BinOp)]
        within = {id(node.left) for node in sums if isinstance(node.left, ast.BinOp)}  # read as a part of the whole sum
        for node in nodes:
            if id(node) not in within:
                self.read(node)
        return definition_of(statement, owner, self.runs_computed)

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
                self.runs_computed |= self.runs_computed_name(node.elts)
        elif isinstance(node, ast.JoinedStr | ast.BinOp) and self.is_own_python(node):
            self.take_command([node])

    def is_own_python(self, word: ast.AST) -> bool:
        return self.any_part(word, lambda node: self.name(node) == "executable", self.own_pythons)

    def is_python_text(self, word: ast.AST) -> bool:
        return self.any_part(word, functools.partial(_is_command, PYTHON_COMMAND), self.python_texts)

    def is_shell_text(self, word: ast.AST) -> bool:
        return self.any_part(word, functools.partial(_is_command, PYTHON_ANYWHERE), self.shell_texts)

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

    def take_command(self, words: Sequence[ast.expr], folder: ast.expr | None = None) -> None:
        """A file that an interpreter runs for the tests, such as a program that computes expected outputs."""
        texts = [text for word in words for text in patterns_in(word, self.values)]
        parts = [part.strip(SHELL_MARKS) for text in texts for part in text.split()]
        bases = {"", *self.folders} if folder is None else patterns_of(folder, self.values)
        changes = {path for command, path in pairwise(parts) if command == "cd"} or {""}
        folders = {join(base, path) if path else base for base in bases for path in changes}
        names = [part for part in parts if part.endswith(".py") and has_constant_name(part)]
        modules = {(0, name) for option, name in pairwise(parts) if option == "-m"}
        self.files |= {join(folder, name) for folder in folders for name in names}
        self.modules |= modules
        self.runs_computed |= not (names or modules or "-c" in parts)

    def runs_computed_name(self, words: Sequence[ast.expr]) -> bool:
        """Whether the first word after the interpreter and its options is computed."""
        after = [index for index, word in enumerate(words) if self.is_own_python(word)]
        for word in words[after[0] + 1 if after else 1 :]:
            patterns = patterns_of(word, self.values)
            if not patterns <= OPTIONS_WITH_CODE and all(pattern.startswith("-") for pattern in patterns):
                continue
            return not all(map(has_constant_name, patterns))
        return False

    def read_call(self, call: ast.Call) -> None:
        name = self.name(call.func)
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(map(self.is_own_python, values)) or (
            name in STARTING and not receiver_of(call) and any(map(self.is_shell_text, values))
        ):
            self.take_command(values, next((word.value for word in call.keywords if word.arg == "cwd"), None))
        if name in BY_NAME:
            self.take_names(values[:1])
        elif name in BY_PATH:
            path = next((word.value for word in call.keywords if word.arg in ("location", "path", "path_name")), None)
            self.take_path(path or next(iter(call.args[BY_PATH[name] :]), None))
        elif name in EXECUTING or (name == "getattr" and any(text in LOADERS for text in texts_in(ast.walk(call)))):
            self.computed = True
        elif name in PATCHING or (isinstance(call.func, ast.Attribute) and self.name(call.func.value) in PATCHING):
            self.take_patched(values[:1])

    def take_patched(self, values: Iterable[ast.expr]) -> None:
        """Anything but a text is an object, which is imported already."""
        for value in values:
            self.modules |= {(0, text) for text in patterns_of(value, self.values) if ANY not in text}
            self.computed |= isinstance(value, ast.JoinedStr | ast.BinOp)

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
        patterns = set() if value is None else patterns_of(value, self.values)
        self.files |= {*filter(has_constant_name, patterns)}
        self.computed |= not patterns or not all(map(has_constant_name, patterns))


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


def _uses_loader_module(nodes: Iterable[ast.AST]) -> bool:
    """A module that loads others is used in another way than by its attributes, such as `vars(importlib)["…"]`."""
    imported = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    firsts = [(alias.asname, alias.name.partition(".")[0]) for alias in imported]
    names = {alias or first for alias, first in firsts if first in LOADER_MODULES}
    uses = [node for node in nodes if isinstance(node, ast.Name) and node.id in names]
    by_attribute = [node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr != "__dict__"]
    return not {*map(id, uses)} <= {*map(id, by_attribute)}


def _is_command(command: re.Pattern[str], node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(command.search(node.value))


def texts_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    return (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
