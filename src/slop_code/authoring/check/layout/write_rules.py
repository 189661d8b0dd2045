"""Rules about tests that write outside of tmp_path."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import single_line
from slop_code.authoring.check.findings import Finding, Location, Rule
from slop_code.authoring.check.layout.problem_files import aliases, called, dotted, full_name
from slop_code.authoring.check.python_sources import Definition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from slop_code.authoring.check.layout.problem_files import ProblemFiles

OUTSIDE = Rule.warning(
    "writes-outside-tmp",
    "A test writes outside tmp_path",
    "Write below tmp_path: the tests folder is read-only, and other folders are shared with other tests.",
)
METHODS = frozenset({"write_text", "write_bytes", "touch", "mkdir", "unlink", "rmdir", "symlink_to", "hardlink_to"})
FUNCTIONS = {
    "os.mkdir": 0, "os.makedirs": 0, "os.remove": 0, "os.unlink": 0, "os.rmdir": 0, "os.rename": 1, "os.replace": 1,
    "os.symlink": 1, "shutil.copy": 1, "shutil.copy2": 1, "shutil.copyfile": 1, "shutil.copytree": 1, "shutil.move": 1,
    "shutil.rmtree": 0,
}  # fmt: skip
"""The index of the argument that names the written path."""

MOVES = frozenset({"chdir", "fchdir", "change_cwd", "working_directory", "isolated_filesystem", "pushd"})
PATH_FUNCTIONS = frozenset(
    {"pathlib.Path", "str", "os.path.join", "os.path.dirname", "os.path.abspath", "os.path.realpath"}
)
PATH_METHODS = frozenset({"resolve", "absolute", "joinpath", "with_name", "with_suffix", "expanduser"})
"""Functions and methods whose result has the base of their first argument or of their object."""


@dataclass(frozen=True, slots=True)
class PathBase:
    """The start of a path outside of tmp_path."""

    text: str
    relative: bool = False
    """It depends on the working directory."""


HERE = PathBase("the tests folder")
CWD = PathBase("the working directory", relative=True)


def writing(files: ProblemFiles) -> Iterator[Finding]:
    moves = any(isinstance(node, ast.Call) and called(node) in MOVES for node in files.nodes())
    for source in files.sources:
        for line, where in writes(source.tree, moves=moves):
            yield Finding(OUTSIDE, Location(source.file, line), f"writes to {where}")


def writes(tree: ast.Module, *, moves: bool = False) -> Iterator[tuple[int, str]]:
    """Line and target of each write. `moves`: a test changes the working directory, so relative paths do not count."""
    known = aliases(tree)
    outer = _names(tree.body, known, {})
    for node in tree.body:
        yield from _in_scope(node, outer, known, moves)


def _in_scope(
    root: ast.AST, outer: dict[str, PathBase], known: Mapping[str, str], moves: bool
) -> Iterator[tuple[int, str]]:
    waiting: list[tuple[ast.AST, dict[str, PathBase]]] = [(root, outer)]
    while waiting:
        node, names = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = {item.arg for item in ast.walk(node.args) if isinstance(item, ast.arg)} | set(_assigned(node))
            names = {name: base for name, base in names.items() if name not in own}
            names |= _names(node.body, known, names)
        elif isinstance(node, ast.Call):
            path = _written(node, known)
            base = _base(path, names, known) if path is not None else None
            if base and not (moves and base.relative):
                yield node.lineno, base.text
        waiting += [(inner, names) for inner in ast.iter_child_nodes(node)]


def _assigned(node: ast.AST) -> Iterator[str]:
    return (name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store))


def _names(body: list[ast.stmt], known: Mapping[str, str], outer: dict[str, PathBase]) -> dict[str, PathBase]:
    """Names that are assigned once, to a path outside of tmp_path: `HERE = Path(__file__).parent`."""
    plain = [node for node in body if not isinstance(node, Definition)]
    bound = Counter(name for node in plain for name in _assigned(node))
    names: dict[str, PathBase] = {}
    for node in plain:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(target := node.targets[0], ast.Name):
            base = _base(node.value, {**outer, **names}, known)
            if base and bound[target.id] == 1:
                names[target.id] = base
    return names


def _written(call: ast.Call, known: Mapping[str, str]) -> ast.expr | None:
    """The path that a call writes to."""
    name = full_name(call.func, known)
    if name in FUNCTIONS and len(call.args) > FUNCTIONS[name]:
        return call.args[FUNCTIONS[name]]
    if isinstance(call.func, ast.Name) and call.func.id == "open" and call.args:
        return call.args[0] if _for_writing(call, 1) else None
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if isinstance(call.func, ast.Attribute) and (method in METHODS or (method == "open" and _for_writing(call, 0))):
        return call.func.value
    return None


def _for_writing(call: ast.Call, position: int) -> bool:
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"] or call.args[position : position + 1]
    mode = given[0].value if given and isinstance(given[0], ast.Constant) else ""
    return isinstance(mode, str) and len(mode) <= 4 and bool(set(mode) & set("wax+"))


def _base(path: ast.expr, names: dict[str, PathBase], known: Mapping[str, str]) -> PathBase | None:
    """None for a path in tmp_path, and for an unknown path."""
    while True:
        if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Div | ast.Add):
            path = path.left
        elif isinstance(path, ast.Attribute | ast.Subscript):
            path = path.value
        elif isinstance(path, ast.Call):
            name = full_name(path.func, known) or dotted(path.func)
            if name in ("pathlib.Path.cwd", "os.getcwd"):
                return CWD
            if name in PATH_FUNCTIONS:
                if not path.args:
                    return CWD if name == "pathlib.Path" else None
                path = path.args[0]
            elif isinstance(path.func, ast.Attribute) and path.func.attr in PATH_METHODS:
                path = path.func.value
            else:
                return None
        else:
            break
    if isinstance(path, ast.Name):
        return HERE if path.id == "__file__" else names.get(path.id)
    return _constant(path.value) if isinstance(path, ast.Constant) and isinstance(path.value, str) else None


def _constant(text: str) -> PathBase | None:
    if text.startswith("/dev/") or not text.strip():
        return None
    if text.startswith(("/", "~")):
        return PathBase(f"a fixed path, {single_line(text)}")
    return PathBase(f"the relative path {single_line(text)}", relative=True)
