"""Definitions of Python files, and the files that they name where a Python runs a file whose name is computed.

The name of such a file comes from somewhere: from a function that calls the running one, a fixture, a variable, the
parameters of a test. These are followed by their names, through all files that pytest loads.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.evaluation.test_code.path_patterns import ANY, has_constant_name, join, patterns_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ENTRYPOINT = "entrypoint"
"""Part of the names by which tests get the submission's command."""

SUBMISSION_CALLS = frozenset({"run", "server", "server_factory"})
"""Fixtures that call the submission."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, a method or a statement outside of functions."""

    names: frozenset[str]
    """Names by which others mention it."""

    mentioned: frozenset[str]
    """All names in it."""

    files: frozenset[tuple[str, str]]
    """Patterns of Python files, with the function that hands each of them over to the submission, or no name."""

    runs_computed: bool
    """The tests' own interpreter runs a file whose name only the running program knows."""


def statements_of(tree: ast.Module | ast.ClassDef) -> Iterator[tuple[ast.AST, str]]:
    """Functions, methods and other statements, with the class of each."""
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            yield from statements_of(statement)
            for part in (*statement.bases, *statement.keywords, *statement.decorator_list):
                yield part, statement.name
        else:
            yield statement, getattr(tree, "name", "")


def definition_of(statement: ast.AST, owner: str, runs_computed: bool) -> Definition:
    assigned, mentioned, passed = set[str](), set[str](), set[str]()
    for node in ast.walk(statement):
        match node:
            case ast.Name(name, ast.Store()):
                assigned.add(name)
            case ast.alias(name, alias):
                assigned.add(alias or "")
                passed.add(name.rpartition(".")[2])
            case ast.Name(name):
                mentioned.add(name)
            case ast.Attribute(attr=name) | ast.arg(name):
                passed.add(name)
            case ast.Constant(value=str(text)) if text.isidentifier():  # `getfixturevalue("oracle")`
                passed.add(text)
    is_function = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
    names = {owner, getattr(statement, "name", "")} if is_function else {owner, *assigned}
    files = frozenset(_files_in(statement, ""))
    return Definition(frozenset(names - {""}), frozenset(mentioned - assigned | passed), files, runs_computed)


def files_for_runners(definitions: Iterable[Definition]) -> set[str]:
    """Patterns of the files that a Python may run by a computed name.

    They are in the definitions that run one, in those that mention these, and in all that either kind mentions. A file
    that is plainly an argument of the submission is none of them.
    """
    definitions = set(definitions)
    running = {definition for definition in definitions if definition.runs_computed}
    names = {name for definition in running for name in definition.names}
    while callers := {other for other in definitions - running if other.mentioned & names}:
        running |= callers
        names |= {name for caller in callers for name in caller.names}
    reached, mentioned = set(running), set[str]()
    while more := {name for definition in reached for name in definition.mentioned} - mentioned:
        mentioned |= more
        reached |= {definition for definition in definitions if definition.names & more}
    files = {file for definition in reached for file in definition.files}
    return {join(ANY, pattern) for pattern, receiver in files if not receiver or receiver in names}


def receiver_of(call: ast.Call) -> str:
    """The name that makes it a call of the submission, which is not that of a call in its arguments."""
    if isinstance(call.func, ast.Name) and call.func.id in SUBMISSION_CALLS:
        return call.func.id
    waiting, names = [call.func, *call.args], list[str]()
    while waiting:
        node = waiting.pop()
        names += [node.id] if isinstance(node, ast.Name) and ENTRYPOINT in node.id else []
        waiting += [] if isinstance(node, ast.Call) else ast.iter_child_nodes(node)  # type: ignore[arg-type]
    return next(iter(names), "")


def _files_in(node: ast.AST, receiver: str) -> Iterator[tuple[str, str]]:
    patterns = patterns_of(node, {})
    yield from ((pattern, receiver) for pattern in patterns if pattern.endswith(".py") and has_constant_name(pattern))
    if all(map(has_constant_name, patterns)):
        return
    receiver = receiver_of(node) if isinstance(node, ast.Call) else receiver
    for child in ast.iter_child_nodes(node):
        yield from _files_in(child, receiver)
