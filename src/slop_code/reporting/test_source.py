"""Sources of test functions, from the problem's tests folder. Nothing of it is imported."""

from __future__ import annotations

import ast
import hashlib
import re
import textwrap
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code._io import read_or_none
from slop_code.reporting.text import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path, PurePosixPath

MAX_FILE_BYTES = 1 << 20
"""A larger test file is not parsed."""

MAX_LINES = 120
"""Lines of a test's source that are shown."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class TestSources:
    """Sources of the tests in a folder; each file is read once."""

    __test__ = False

    folder: Path
    digest_of: Callable[[PurePosixPath], str | None]
    """SHA-256 of the content that was evaluated; None for a path that is no file of the tests."""

    _files: dict[PurePosixPath, dict[str, str]] = field(default_factory=dict)

    def of(self, file: PurePosixPath, test_id: str) -> str | None:
        """`test_id` is the node id without its file."""
        digest = self.digest_of(file)
        if digest is None:
            return None
        if file not in self._files:
            data = read_or_none(self.folder / file, MAX_FILE_BYTES)
            is_same = data is not None and hashlib.sha256(data).hexdigest() == digest
            self._files[file] = function_sources(data) if data is not None and is_same else {}
        return self._files[file].get(test_id.partition("[")[0])


def function_sources(data: bytes) -> dict[str, str]:
    """Functions and methods of a module with their decorators, by name (`TestClass::test_name`).

    Those with a name that occurs twice are left out, as it is not known which one counts. Empty where the module
    cannot be parsed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the parser, about invalid escapes and the like
            tree = ast.parse(data)
        lines = re.split("\r\n?|\n", data.decode("utf-8"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    functions = list(_functions(tree))
    counts = Counter(name for name, _ in functions)
    return {name: _source(function, lines) for name, function in functions if counts[name] == 1}


def _functions(tree: ast.Module) -> Iterator[tuple[str, _Function]]:
    """Also those in conditions and the like."""
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        prefix, node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _Function):
                yield f"{prefix}{child.name}", child
            elif isinstance(child, ast.ClassDef):
                waiting.append((f"{prefix}{child.name}::", child))
            elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                waiting.append((prefix, child))


def _source(function: _Function, lines: list[str]) -> str:
    start = min(node.lineno for node in (function, *function.decorator_list)) - 1
    end = function.end_lineno or start + 1
    kept = lines[start : min(end, start + MAX_LINES)]
    text = textwrap.dedent("\n".join(kept)).rstrip()
    return text if end - start <= MAX_LINES else f"{text}\n[... {plural(end - start - MAX_LINES, 'more line')}]"
